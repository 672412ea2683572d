//go:build !race

package sigv4_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct/sigv4"
)

// The signing key is derived once for many signatures. The race detector would add allocations.
func TestASignatureIsOneAllocation(t *testing.T) {
	var s sigv4.Signer
	creds := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}
	n := testing.AllocsPerRun(100, func() {
		s.Authorization(&creds, sigv4.Scope{Region: "eu-west-1", Service: "dynamodb"}, "20150830T123600Z", "host", []byte("canonical"))
	})
	if n > 1 {
		t.Errorf("it takes %v allocations; want 1", n)
	}
}
