from corank.deploy.distributed.engine import DaskEngine as DaskEngine
from corank.deploy.distributed.engine import LocalEngine as LocalEngine
from corank.deploy.distributed.fit import fit_parts as fit_parts
from corank.deploy.distributed.fit import pair_sums as pair_sums
from corank.deploy.distributed.fit import predict_parts as predict_parts
from corank.deploy.distributed.parts import Parts as Parts
from corank.deploy.distributed.parts import Pass as Pass
from corank.deploy.export.describe import Description as Description
from corank.deploy.export.describe import describe as describe
from corank.deploy.export.export import ExportedFiles as ExportedFiles
from corank.deploy.export.export import Verification as Verification
from corank.deploy.export.export import export_fusion as export_fusion
from corank.deploy.export.export import export_model as export_model
from corank.deploy.export.pyterrier import pyterrier_ranker as pyterrier_ranker
from corank.deploy.export.target import TARGETS as TARGETS
from corank.deploy.persist.files import load as load
from corank.deploy.persist.files import model_bytes as model_bytes
from corank.deploy.persist.files import model_from_bytes as model_from_bytes
from corank.deploy.persist.files import save as save

__all__: list[str]
