"""Models that answer in the place of another one."""

from handrail.agent.models import Model, Profile


class InPlaceOf:
    """The part of a `Model` in which one that stands for another is like it: its name, and what it can do. The other is
    not closed by it; whoever made that one does."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The name of the model in whose place this is."""
        return self._model.name

    @property
    def profile(self) -> Profile:
        """What that one can do."""
        return self._model.profile

    async def aclose(self) -> None:
        """Nothing is held open."""
