"""A filter of your own: a frozen value with a name, which can be written down and comes back to life."""

from handrail.filters import Filter, History, Messages, assistant, filter_kind, from_descriptor, seal, user


@filter_kind("shop/without-words", version=1)
class WithoutWords(Filter, frozen=True):
    """Leaves out every message that holds one of these words."""

    words: tuple[str, ...]

    def __call__(self, history: Messages) -> Messages:
        return tuple(message for message in history if not any(word in message.text for word in self.words))


discreet = WithoutWords(("salary",))
history = History(
    (
        user("What is my salary?", id="m1"),
        assistant("I cannot say.", id="m2"),
        user("Then help me with my parcel.", id="m3"),
    )
)

print([message.text for message in discreet(history)])
print(discreet.descriptor)
assert from_descriptor(discreet.descriptor) == discreet
print(discreet.explain(history))

# What a boundary makes of it: lawful, without reasoning, and with something to answer.
print([message.text for message in seal(discreet)(history)])
