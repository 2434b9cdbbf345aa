"""Forms with a field to choose an account, which offers the first ones by name and the one that is asked for."""

from typing import Any

from django import forms
from django.db.models import Q
from django.http import HttpRequest

from memory.admin.text import excerpt_of
from memory.models import Account
from memory_project.admin_lists import read_uuid
from memory_project.staff import limit_rows, visible_accounts

MAX_OFFERED = 50
"""Accounts that are offered, besides the one that is asked for. The account switcher narrows them to one."""


class AccountChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]  # has no parameter at run time
    """One of the accounts that the request may see. An `AccountChoiceForm` calls `offer` when it is made."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Account.objects.none(), **{"empty_label": None, **options})

    def offer(self, request: HttpRequest, given: Any) -> None:
        """Limit the field to the accounts that the request may see; `given` is the id that it names, if any."""
        seen = limit_rows(Account.objects.only("name"), request)
        self.queryset = seen
        visible = visible_accounts(request)
        if visible is not None and len(visible) == 1:
            self.initial = next(iter(visible))
        first = seen.order_by("name").values("pk")[:MAX_OFFERED]
        rows = seen.filter(Q(pk=read_uuid(str(given or ""))) | Q(pk__in=first)).order_by("name")
        widget: Any = self.widget
        offered = [(str(id_), excerpt_of(name)) for id_, name in rows.values_list("id", "name")]
        # nobody shall write to the first account by name without having chosen it
        widget.choices = offered if len(offered) == 1 else [("", "choose…"), *offered]


class AccountChoiceForm(forms.Form):
    """A form about one account."""

    account = AccountChoiceField()

    def __init__(self, request: HttpRequest, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        accounts: Any = self.fields["account"]
        accounts.offer(request, (data if data is not None else self.initial).get("account"))
