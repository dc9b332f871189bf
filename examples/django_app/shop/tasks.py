# shop/tasks.py
from ostinato import DailyAt, Every
from ostinato.integrations.django import register
from shop.models import Order


@register("delete_unconfirmed", schedule=DailyAt(hour=3, minute=0), enabled=True)
def delete_unconfirmed() -> int:
    """Delete the orders that nobody has confirmed."""
    return int(Order.objects.filter(confirmed=False).delete()[0])


@register("count_orders", schedule=Every(minutes=5))
async def count_orders() -> int:
    """Coroutines may use the async ORM."""
    return int(await Order.objects.acount())


@register
def confirm(order: int) -> str:
    """Confirm an order, and write a mail."""
    found = Order.objects.get(pk=order)
    found.confirmed = True
    found.save()
    return f"sent to {found.mail}"
