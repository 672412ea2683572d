// Package ddblocal starts Amazon DynamoDB Local for tests, demos and benchmarks.
//
//	server, err := ddblocal.Start(ctx)
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	client := server.Client()
//
// A test asks for the one that its process shares:
//
//	client := ddblocal.ForTest(t).Client()
//
// # Three ways
//
// [Start] takes the first of these that is there, and if none is, its error names all three with what each one lacks:
//
//  1. The endpoint in AWS_ENDPOINT_URL_DYNAMODB, the variable that the AWS SDKs and the AWS CLI read too.
//  2. Java 17 or later, with Maven for the first run: it copies the official artifact
//     software.amazon.dynamodb:DynamoDBLocal into the user's cache folder ([os.UserCacheDir], then
//     lambdaidem/dynamodb-local-VERSION). Delete that folder to fetch it again.
//  3. Docker, with the official image amazon/dynamodb-local.
//
// The second and third need a POSIX shell as well, since a shell keeps watch over the server.
//
// # Life
//
// A server that Start started dies with the process that started it, even when that one is killed by SIGKILL: the shell
// that watches it holds the reading end of a pipe whose writing end is in the parent alone, so the kernel itself says
// when the parent is gone. Between Start and [Server.Stop] no goroutine runs.
//
// # Safety
//
// DynamoDB Local has no option to bind to loopback alone: run by Java, it listens on every interface of the machine and
// accepts any credentials. Keep nothing but made-up data in it. (The container is published on 127.0.0.1 alone.) Web
// pages can't read from it: Start allows one origin, random and invalid, by which it also tells its own server from
// another one on the same port. Telemetry is off.
//
// Every request carries made-up credentials, so a test that is pointed at AWS itself by mistake is refused there and
// can't touch a real table.
//
// DynamoDB Local has a licence of its own (LICENSE.txt in its jar). It may not be redistributed, so no part of it belongs
// in a repository.
package ddblocal
