"""What faded, told with what it was before (`services.decay`)."""


def tell_value(value: float, *, base: float | None, faded: float | None) -> str:
    """A value that the job `decay` lowers, and its base where it did.

    >>> tell_value(0.10732, base=0.5, faded=0.10732)
    '0.107, 0.5 before it faded'
    >>> tell_value(0.9, base=0.5, faded=0.10732)
    '0.9'
    """
    if base is None or value != faded or base <= value:
        return f"{value:g}"
    return f"{value:.3g}, {base:g} before it faded"
