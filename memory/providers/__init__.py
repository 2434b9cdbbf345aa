"""The outside world: models that embed, write, rank. Everything above sees a Protocol, never a vendor.

Each kind has a Protocol, a real implementation, and an offline one that works with no key and no network.
To add an implementation, write the class, name it in the package's selection, and run it through the same
tests as the others. Failures are `ProviderError`s from `memory.errors`, whatever the vendor raised.
"""
