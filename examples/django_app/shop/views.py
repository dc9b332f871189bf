# shop/views.py
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from ostinato.integrations.django import jobs
from shop.models import Order
from shop.tasks import confirm


@csrf_exempt
def order(request: HttpRequest) -> JsonResponse:
    made = Order.objects.create(mail=request.GET["mail"])
    return JsonResponse({"run": confirm.enqueue(made.pk).id})


def show(request: HttpRequest, number: int) -> JsonResponse:
    run = jobs.runs.get(number)
    return JsonResponse({"state": run.state, "result": run.result})
