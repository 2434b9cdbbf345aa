"""The account switcher at the top of each page: one account, to which all pages keep until another is chosen."""

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from memory.models import Account
from memory_project.admin_lists import read_uuid
from memory_project.staff import CHOSEN_ACCOUNT, limit_of


@require_POST
def switch_account(request: HttpRequest) -> HttpResponse:
    """Keep the posted account in the session, or forget the former one if none is posted."""
    given = request.POST.get("account", "")
    if not given:
        request.session.pop(CHOSEN_ACCOUNT, None)
        return HttpResponseRedirect(reverse("admin:index"))
    account_id, limit = read_uuid(given), limit_of(request.user)
    may_see = limit is None or account_id in limit
    if account_id is None or not may_see or not Account.objects.filter(pk=account_id).exists():
        raise Http404("There is no such account.")
    request.session[CHOSEN_ACCOUNT] = str(account_id)
    return HttpResponseRedirect(reverse("admin:index"))


app_name = "switcher"
urlpatterns = [path("", admin.site.admin_view(switch_account), name="switch")]
