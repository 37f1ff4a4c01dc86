"""A filter that is chosen at the boundary."""

from handrail.filters import EdgeInfo, Filter, Messages, dynamic, full, last_n, none, resolve, user

HISTORY = (user("a"), user("b"))


async def test_it_is_chosen_from_the_edge_and_the_history() -> None:
    def choose(history: Messages, edge: EdgeInfo) -> Filter:
        return last_n(len(history)) if edge.deps == "trusted" else none()

    assert await resolve(dynamic(choose), HISTORY, EdgeInfo(source="A", target="B")) == none()
    assert await resolve(dynamic(choose), HISTORY, EdgeInfo(source="A", target="B", deps="trusted")) == last_n(2)


async def test_what_chooses_may_await() -> None:
    async def choose(history: Messages, edge: EdgeInfo) -> Filter:
        return full()

    assert await resolve(dynamic(choose, timeout=5), HISTORY, EdgeInfo(source="A", target="B")) == full()


def test_it_prints_the_name_of_what_chooses() -> None:
    def by_tenant(history: Messages, edge: EdgeInfo) -> Filter:
        return full()

    assert repr(dynamic(by_tenant)) == "dynamic(by_tenant)"
