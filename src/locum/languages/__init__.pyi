# The public names of locum.languages, each with its module. They are imported on first use.

from locum.languages.classification import Classification as Classification
from locum.languages.classification import classify as classify
from locum.languages.equivalence import Comparison as Comparison
from locum.languages.equivalence import equivalent as equivalent
from locum.languages.ltl import LTL as LTL
from locum.languages.regular import language as language

from . import b_rasp as b_rasp
from . import c_rasp as c_rasp
from . import rasp_l as rasp_l

__all__: list[str]
