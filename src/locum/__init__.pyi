# The public names of Locum, each with the module that it comes from. This is the only list of them:
# type checkers read it as it is, and __init__.py reads it to import each name on first use.
# ("as" says that a name is exported.)

from locum.analysis import Architecture as Architecture
from locum.analysis import architecture as architecture
from locum.compiler import compile as compile  # noqa: A004
from locum.compiler import values_of as values_of
from locum.dialects.classify import classify as classify
from locum.dialects.equivalence import equivalent as equivalent
from locum.errors import CompileError as CompileError
from locum.errors import ExecutionError as ExecutionError
from locum.errors import GraphError as GraphError
from locum.errors import InputError as InputError
from locum.errors import LocumError as LocumError
from locum.language.handles import Selector as Selector
from locum.language.handles import SOp as SOp
from locum.language.program_files import load_program as load_program
from locum.language.program_files import save_program as save_program
from locum.language.python import aggregate as aggregate
from locum.language.python import best as best
from locum.language.python import bfloat16 as bfloat16
from locum.language.python import constant as constant
from locum.language.python import cos as cos
from locum.language.python import erf as erf
from locum.language.python import exp as exp
from locum.language.python import family as family
from locum.language.python import float16 as float16
from locum.language.python import float32 as float32
from locum.language.python import float64 as float64
from locum.language.python import floor as floor
from locum.language.python import full as full
from locum.language.python import indicator as indicator
from locum.language.python import indices as indices
from locum.language.python import key as key
from locum.language.python import length as length
from locum.language.python import log as log
from locum.language.python import lookup as lookup
from locum.language.python import maximum as maximum
from locum.language.python import member as member
from locum.language.python import minimum as minimum
from locum.language.python import query as query
from locum.language.python import select as select
from locum.language.python import selector_width as selector_width
from locum.language.python import sin as sin
from locum.language.python import sqrt as sqrt
from locum.language.python import stable_hash as stable_hash
from locum.language.python import sum_over as sum_over
from locum.language.python import tanh as tanh
from locum.language.python import to_rasp as to_rasp
from locum.language.python import tokens as tokens
from locum.language.python import tokens_bool as tokens_bool
from locum.language.python import tokens_float as tokens_float
from locum.language.python import tokens_int as tokens_int
from locum.language.python import tokens_str as tokens_str
from locum.language.python import where as where
from locum.language.tabulated import map as map  # noqa: A004
from locum.language.tracr import from_tracr as from_tracr
from locum.simulators import Attention as Attention
from locum.simulators import DecoderLayer as DecoderLayer
from locum.simulators import Encoder as Encoder
from locum.simulators import FactoredAttention as FactoredAttention
from locum.simulators import LinearAttention as LinearAttention
from locum.simulators import Linformer as Linformer
from locum.simulators import MultiHeadAttention as MultiHeadAttention
from locum.simulators import Order as Order
from locum.simulators import Performer as Performer
from locum.simulators import Stack as Stack
from locum.simulators import Sumformer as Sumformer
from locum.simulators import UniversalSimulator as UniversalSimulator
from locum.simulators import from_torch as from_torch
from locum.transformer import CompiledTransformer as CompiledTransformer
from locum.transformer import load as load
from locum.transformer import save as save
from locum.verification import certify as certify
from locum.verification import prove as prove

from . import torch as torch

__version__: str
__all__: list[str]
