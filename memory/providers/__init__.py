"""Models that embed, write and rank. Code above this package uses a Protocol and never a vendor's client.

There are a Protocol and an implementation for each kind of model, and an offline one where the service needs it.
To add an implementation, write the class, name it in the package's selection, and run it through the same
tests as the others. Failures are `ProviderError`s from `memory.errors`, whatever the vendor raised.
"""
