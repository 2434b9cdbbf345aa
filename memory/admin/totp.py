"""Codes of an authenticator app (TOTP) as a second factor of the log-in: each member of staff may switch them on."""

from base64 import b32encode
from typing import Any

import qrcode
from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django_otp.plugins.otp_totp.models import TOTPDevice

from memory.admin.base import render_page
from memory.admin.users import UnlimitedStaffAdmin

NAME = "authenticator app"
SECRET_GROUP = 4
WRONG_CODE = "The code is wrong or was used already. Type the one that the app shows now."


def find_device(user: Any, *, confirmed: bool) -> Any:
    """Return the user's device that is in use, or the one that is not confirmed yet. None if there is none."""
    return TOTPDevice.objects.filter(user=user, confirmed=confirmed).order_by("pk").first()


def show_totp(request: HttpRequest) -> HttpResponse:
    """Show the secret of the user's authenticator app until a code of it was typed, or a form to switch it off."""
    user: Any = request.user
    device = find_device(user, confirmed=True)
    if request.method == "POST":
        with transaction.atomic():
            return switch_totp(request, user, is_on=device is not None)
    pending = None if device else find_device(user, confirmed=False)
    if device is None and pending is None:
        pending = TOTPDevice.objects.create(user=user, name=NAME, confirmed=False)
    return render_page(
        request,
        "totp.html",
        "Two-factor authentication",
        is_on=device is not None,
        secret=group_secret(pending) if pending else "",
        drawing=draw_code(pending.config_url) if pending else None,
    )


def switch_totp(request: HttpRequest, user: Any, *, is_on: bool) -> HttpResponse:
    """Switch the second factor on, or off if it is on, for the right code."""
    # locked, so that two codes are not judged at once
    rows = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=is_on).order_by("pk")
    device = rows.first()
    if device is None or not device.verify_token(request.POST.get("code", "").replace(" ", "")):
        messages.error(request, WRONG_CODE)
    elif is_on:
        TOTPDevice.objects.filter(user=user).delete()
        messages.success(request, "Two-factor authentication is off.")
    else:
        device.confirmed = True
        device.save(update_fields=["confirmed"])
        messages.success(request, "Two-factor authentication is on: logging in takes a code of the app from now on.")
    return HttpResponseRedirect(reverse("totp:page"))


def group_secret(device: Any) -> str:
    """Format the secret as apps take it, in groups that are easy to type."""
    secret = b32encode(device.bin_key).decode()
    return " ".join(secret[at : at + SECRET_GROUP] for at in range(0, len(secret), SECRET_GROUP))


def draw_code(text: str) -> dict[str, Any]:
    """Return the QR code of a text as the size and the path of an SVG, which needs no style and no script."""
    code = qrcode.QRCode(border=4)
    code.add_data(text)
    rows = code.get_matrix()
    squares = (f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark)
    return {"size": len(rows), "path": "".join(squares)}


admin.site.unregister(TOTPDevice)


@admin.register(TOTPDevice)
class TOTPDeviceAdmin(UnlimitedStaffAdmin):
    """The devices of all users, without their secrets. Deleting one lets a user who has lost it log in again."""

    list_display = fields = readonly_fields = ("user", "name", "confirmed", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("user__username__exact",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False


app_name = "totp"
urlpatterns = [path("", admin.site.admin_view(show_totp), name="page")]
