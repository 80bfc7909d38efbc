# The public names of locum.rasp, each with its module. They are imported on first use.

from locum.graph.architecture import Architecture as Architecture
from locum.graph.architecture import architecture as architecture
from locum.rasp.handles import Selector as Selector
from locum.rasp.handles import SOp as SOp
from locum.rasp.program_files import load_program as load_program
from locum.rasp.program_files import save_program as save_program
from locum.rasp.python import aggregate as aggregate
from locum.rasp.python import best as best
from locum.rasp.python import bfloat16 as bfloat16
from locum.rasp.python import constant as constant
from locum.rasp.python import cos as cos
from locum.rasp.python import erf as erf
from locum.rasp.python import exp as exp
from locum.rasp.python import family as family
from locum.rasp.python import float16 as float16
from locum.rasp.python import float32 as float32
from locum.rasp.python import float64 as float64
from locum.rasp.python import floor as floor
from locum.rasp.python import full as full
from locum.rasp.python import indicator as indicator
from locum.rasp.python import indices as indices
from locum.rasp.python import length as length
from locum.rasp.python import log as log
from locum.rasp.python import lookup as lookup
from locum.rasp.python import maximum as maximum
from locum.rasp.python import member as member
from locum.rasp.python import minimum as minimum
from locum.rasp.python import select as select
from locum.rasp.python import selector_width as selector_width
from locum.rasp.python import sin as sin
from locum.rasp.python import sqrt as sqrt
from locum.rasp.python import stable_hash as stable_hash
from locum.rasp.python import sum_over as sum_over
from locum.rasp.python import tanh as tanh
from locum.rasp.python import to_rasp as to_rasp
from locum.rasp.python import tokens as tokens
from locum.rasp.python import tokens_bool as tokens_bool
from locum.rasp.python import tokens_float as tokens_float
from locum.rasp.python import tokens_int as tokens_int
from locum.rasp.python import tokens_str as tokens_str
from locum.rasp.python import where as where
from locum.rasp.tabulated import map as map  # noqa: A004
from locum.rasp.text.limits import Limits as Limits
from locum.rasp.text.mistakes import RaspError as RaspError
from locum.rasp.text.results import Result as Result
from locum.rasp.text.session import Session as Session
from locum.rasp.tracr import from_tracr as from_tracr

__all__: list[str]
