#!/usr/bin/env python3
"""Watches a run of Tengen with nothing but stubs made from proto/: no package of Tengen is needed.

Make the stubs once (grpcio-tools brings the compiler):

    python3 -m pip install grpcio grpcio-tools
    python3 -m grpc_tools.protoc -I proto --python_out=stubs --grpc_python_out=stubs proto/tengen/v1/*.proto
    PYTHONPATH=stubs python3 examples/python/watch_run.py 127.0.0.1:7300
"""

import argparse
import sys

import grpc
from google.protobuf.message import Message

from tengen.v1 import model_pb2, model_pb2_grpc, run_pb2, run_pb2_grpc


def connect(address: str, ca: str | None) -> grpc.Channel:
    """A channel to the coordinator, over TLS when its certificate is given."""
    if ca is None:
        return grpc.insecure_channel(address)
    with open(ca, "rb") as file:
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()))


def pages(call, request: Message, field: str, **options):
    """Every row of a paged list."""
    while True:
        page = call(request, **options)
        yield from getattr(page, field)
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", nargs="?", default="127.0.0.1:7300")
    parser.add_argument("--ca", help="certificate of a coordinator with TLS")
    parser.add_argument("--token-file", help="file with a token of the role viewer")
    parser.add_argument("--messages", type=int, default=0, help="end after so many messages of the watch")
    options = parser.parse_args()
    metadata = []
    if options.token_file:
        with open(options.token_file, encoding="ascii") as file:
            metadata.append(("authorization", f"Bearer {file.read().strip()}"))

    with connect(options.address, options.ca) as channel:
        runs = run_pb2_grpc.RunServiceStub(channel)
        models = model_pb2_grpc.ModelServiceStub(channel)
        listed = pages(models.ListModels, model_pb2.ListModelsRequest(), "models", metadata=metadata, timeout=10)
        for model in listed:
            state = model_pb2.ModelState.Name(model.state).removeprefix("MODEL_STATE_").lower()
            print(f"{model.model_id.hex()[:16]}  iteration {model.iteration}  {state}  {model.verdict}")
        try:
            models.GetModel(model_pb2.GetModelRequest(name="gen:4000000"), metadata=metadata, timeout=10)
        except grpc.RpcError as error:
            print(f"refused as it should be: {error.code().name}: {error.details()}")

        seen = 0
        request = run_pb2.WatchStatusRequest(interval_ms=1000)
        for status in runs.WatchStatus(request, metadata=metadata):
            for event in status.events:
                print(f"event: {event.WhichOneof('event')}")
            print(
                f"{status.run_id}: iteration {status.iteration}, generation {status.generation}, "
                f"{status.games} games, window {status.window_positions}/{status.window_capacity}, "
                f"{status.positions_per_minute:.0f} positions/min {status.waiting}"
            )
            seen += 1
            if seen == options.messages:
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
