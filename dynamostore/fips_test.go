package dynamostore

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// In a process that allows only approved cryptography (Go, "FIPS 140-3 Compliance"), both
// transports work. In such a process, Go's runtime panics at anything else, such as an HMAC key
// that is shorter than AWS's secrets.
func TestBothTransportsUseApprovedCryptographyAlone(t *testing.T) {
	if strings.Contains(os.Getenv("GODEBUG"), "fips140=only") {
		useBothTransports(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBothTransportsUseApprovedCryptographyAlone$", "-test.v") //nolint:gosec // the child runs this test again
	child.Env = append(os.Environ(), "GODEBUG=fips140=only")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "served by both") {
		t.Errorf("%v: %s", err, out)
	}
}

func useBothTransports(t *testing.T) {
	t.Helper()
	aws := func(o *dynamodb.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider("AKIDAKIDAKIDAKIDAKID", strings.Repeat("SECRET-", 6), "TOKEN")
	}
	for _, by := range []Transport{TransportSDK, TransportDirect} {
		s, sent := recording(aws, "records", by)
		if which, why := s.Transport(); which != by {
			t.Errorf("the transport is %q, since %q; want %q", which, why, by)
		}
		for verb, call := range wireCalls() {
			if err := call(t.Context(), s); err != nil {
				t.Errorf("%s: %v", verb, err)
			}
		}
		if all := sent.take(t); len(all) == 0 || all[0].bySDK != (by == TransportSDK) {
			t.Errorf("%d requests by %s", len(all), by)
		}
	}
	// New reports at once that this process can't encrypt.
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "Encryption.Current is set, and this process can't encrypt") {
			t.Errorf("a store that would encrypt: %s", said)
		}
		t.Log("served by both")
	}()
	New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}, aws), "records", encrypted("k1"))
}
