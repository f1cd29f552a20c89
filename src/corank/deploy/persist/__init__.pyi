from corank.deploy.persist.files import load as load
from corank.deploy.persist.files import save as save

__all__: list[str]
