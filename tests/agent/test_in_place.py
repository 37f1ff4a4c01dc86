"""Models that answer in the place of another one."""

from pathlib import Path

from handrail.agent import FunctionModel
from handrail.agent.cassettes import Cassette
from handrail.agent.models import Profile


async def test_a_model_in_the_place_of_another_is_called_and_can_do_what_that_one_does(tmp_path: Path) -> None:
    known = FunctionModel(lambda request: "Hello.", name="clerk", profile=Profile(json_schema=True))
    with Cassette(tmp_path / "talk.jsonl", mode="none") as cassette:
        model = cassette.model(known)
        assert (model.name, model.profile) == ("clerk", Profile(json_schema=True))
