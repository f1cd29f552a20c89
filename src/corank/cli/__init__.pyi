from corank.cli.clicks import read_bias as read_bias
from corank.cli.commands import GROUPS as GROUPS
from corank.cli.commands import OUTPUTS as OUTPUTS
from corank.cli.commands import SERVICE as SERVICE
from corank.cli.commands import Command as Command
from corank.cli.commands import app as app
from corank.cli.commands import main as main
from corank.cli.imports import import_scikit_learn as import_scikit_learn
from corank.cli.judge import PAIR_STRATEGIES as PAIR_STRATEGIES
from corank.cli.judge import STOPPING_RULES as STOPPING_RULES
from corank.cli.learn.models import load_ranker as load_ranker
from corank.cli.learn.models import preferred_layout as preferred_layout
from corank.cli.options import Force as Force
from corank.cli.options import Json as Json
from corank.cli.options import KeepFormulas as KeepFormulas
from corank.cli.options import Qid as Qid
from corank.cli.options import Seed as Seed
from corank.cli.output import emit as emit
from corank.cli.output import make_console as make_console
from corank.cli.output import print_json as print_json
from corank.cli.output import show as show
from corank.cli.output import table_fields as table_fields
from corank.cli.rows import FittedModel as FittedModel
from corank.cli.rows import require_model_features as require_model_features
from corank.cli.verbs import Commands as Commands
from corank.cli.verbs import Verb as Verb

__all__: list[str]
