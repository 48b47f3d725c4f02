"""A service that speaks S3 (moto), on a free port, with a bucket: runs a command with its address in LAZULI_TEST_S3."""

import os
import subprocess
import sys
import urllib.request

from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
try:
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    request = urllib.request.Request(f"{endpoint}/blocks", method="PUT")
    # Its signature is not checked, but the name of the service is looked for in it.
    request.add_header("authorization", "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request")
    urllib.request.urlopen(request).close()
    parameters = f"region=us-east-1&key_id=id&key_env=LAZULI_TEST_S3_KEY&endpoint={endpoint}"
    address = f"s3://blocks/folder?{parameters}"
    sys.exit(subprocess.call(sys.argv[1:], env={**os.environ, "LAZULI_TEST_S3": address, "LAZULI_TEST_S3_KEY": "key"}))
finally:
    server.stop()
