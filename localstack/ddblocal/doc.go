// Package ddblocal starts Amazon DynamoDB Local for tests, demos and benchmarks.
//
//	server, err := ddblocal.Start(ctx)
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	client := server.Client()
//
// All tests of a process share one server:
//
//	client := ddblocal.ForTest(t).Client()
//
// # How a server is found or started
//
// [Start] uses the first of these that is available. If none is, its error names all three, and says why each is not
// available:
//
//  1. The endpoint in AWS_ENDPOINT_URL_DYNAMODB. The AWS SDKs and the AWS CLI read this variable too.
//  2. Java 17 or later, with Maven for the first run. Maven copies the official artifact
//     software.amazon.dynamodb:DynamoDBLocal into the user's cache folder ([os.UserCacheDir], then
//     lambdaidem/dynamodb-local-VERSION). Delete that folder to download it again.
//  3. Docker, with the official image amazon/dynamodb-local.
//
// The second and third also need a POSIX shell, which watches over the server.
//
// # Lifetime
//
// A server that Start has started ends with the process that called Start, even if SIGKILL ends that process. The shell
// that watches over the server reads from a pipe. Only the calling process has the writing end, so the kernel closes the
// pipe when that process ends. Between Start and [Server.Stop] no goroutine runs.
//
// # Safety
//
// Store only made-up data in the server. DynamoDB Local can't be limited to the loopback interface: if Java runs it, it
// listens on every interface of the machine and accepts any credentials. A container is published on 127.0.0.1 only. Web
// pages can't read from the server, because it allows only one CORS origin, which is random and invalid. Start also uses
// that origin to recognize its own server. Telemetry is off.
//
// Every request has made-up credentials. If a test is configured with an endpoint of AWS by mistake, AWS refuses its
// requests, so it can't change a real table.
//
// DynamoDB Local has a license of its own (LICENSE.txt in its jar). It may not be redistributed, so don't commit any part
// of it to a repository.
package ddblocal
