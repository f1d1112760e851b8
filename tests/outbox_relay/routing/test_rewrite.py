import pytest

from outbox_relay.routing.errors import RouteError
from outbox_relay.routing.rewrite import topic_rewrite


@pytest.mark.parametrize(
    ("pattern", "replacement", "topic", "expected"),
    [
        ("(.*)", "evt.$1", "User", "evt.User"),
        ("(?<routedByValue>User.*)", "evt.${routedByValue}", "User", "evt.User"),
        ("(?<routedByValue>User.*)", "evt.${routedByValue}", "Order", "Order"),
        ("User", "x", "UserCreated", "UserCreated"),
        ("(a)(b)?", "$2-$1", "a", "-a"),
        ("(a)", "$12", "a", "a2"),
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)", "$12", "abcdefghijkl", "l"),
        ("(.*)", "$0.$0", "a", "a.a"),
        ("(.*)", r"\$1\\", "a", "$1\\"),
        ("(?<=x)?(a)", "$1", "a", "a"),
        (r"(?<c>.)\k<c>", "${c}", "oo", "o"),
        (r"\(?<c>.*", "x", "(<c>", "x"),
        (r"a\.b", "x", "a.b", "x"),
        ("a.b", "", "a.b", ""),
    ],
)
def test_a_topic_matched_as_a_whole_is_rewritten_and_any_other_is_unchanged(
    pattern: str, replacement: str, topic: str, expected: str
) -> None:
    assert topic_rewrite(pattern, replacement)(topic) == expected


@pytest.mark.parametrize(
    ("pattern", "replacement", "path", "problem"),
    [
        ("(", "x", "pattern", "no regular expression"),
        (r"\p{Alpha}", "x", "pattern", "no regular expression"),
        ("(a)", "$2", "replacement", "names group 2"),
        ("(a)", "${b}", "replacement", "names group b"),
        ("(a)", "$", "replacement", "write \\$ for a dollar sign"),
        ("(a)", "x\\", "replacement", "write \\$ for a dollar sign"),
    ],
)
def test_a_rewrite_that_cannot_work_is_refused_by_its_place(
    pattern: str, replacement: str, path: str, problem: str
) -> None:
    with pytest.raises(RouteError) as refused:
        topic_rewrite(pattern, replacement)
    assert refused.value.path == f"spec.route.topicRewrite.{path}"
    assert problem in refused.value.problem
