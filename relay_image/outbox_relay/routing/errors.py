"""What is wrong with a route itself, found when it is compiled and before any event is read."""


class RouteError(ValueError):
    """A part of a route that cannot be used.

    Attributes:
        path: where in the configuration, such as `spec.route.topic`.
        problem: what is wrong there and what to write instead.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
