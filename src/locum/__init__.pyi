# The public names of Locum, each with its module. They are imported on first use.

from locum.errors import CompileError as CompileError
from locum.errors import ExecutionError as ExecutionError
from locum.errors import GraphError as GraphError
from locum.errors import InputError as InputError
from locum.errors import LocumError as LocumError
from locum.networks.compiler import compile as compile  # noqa: A004
from locum.networks.transformer import CompiledTransformer as CompiledTransformer
from locum.networks.transformer import load as load
from locum.networks.transformer import save as save
from locum.rasp.handles import Selector as Selector
from locum.rasp.handles import SOp as SOp
from locum.rasp.program_files import load_program as load_program
from locum.rasp.program_files import save_program as save_program
from locum.rasp.python import aggregate as aggregate
from locum.rasp.python import best as best
from locum.rasp.python import constant as constant
from locum.rasp.python import cos as cos
from locum.rasp.python import erf as erf
from locum.rasp.python import exp as exp
from locum.rasp.python import family as family
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
from locum.rasp.python import sum as sum  # noqa: A004
from locum.rasp.python import sum_over as sum_over
from locum.rasp.python import tanh as tanh
from locum.rasp.python import tokens as tokens
from locum.rasp.python import tokens_bool as tokens_bool
from locum.rasp.python import tokens_float as tokens_float
from locum.rasp.python import tokens_int as tokens_int
from locum.rasp.python import tokens_str as tokens_str
from locum.rasp.python import where as where
from locum.rasp.tabulated import map as map  # noqa: A004
from locum.simulators import Attention as Attention
from locum.simulators import Encoder as Encoder
from locum.simulators import UniversalSimulator as UniversalSimulator

from . import constructions as constructions
from . import experiments as experiments
from . import graph as graph
from . import languages as languages
from . import networks as networks
from . import paper as paper
from . import proofs as proofs
from . import rasp as rasp
from . import simulators as simulators
from . import torch as torch

__version__: str
__all__: list[str]
