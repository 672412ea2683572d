package stack

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// besideADatabase starts a DynamoDB Local and sets AWS_ENDPOINT_URL_DYNAMODB to it, as if it had
// been running before the stack. It returns a function that lists its tables. The server is not
// the shared one, because other tests create and delete tables there.
func besideADatabase(t *testing.T) func() []string {
	t.Helper()
	database, err := ddblocal.Start(t.Context(), func(o *ddblocal.Options) { o.Own = true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv(ddblocal.EndpointVariable, database.Endpoint())
	return func() []string {
		found, err := database.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if err != nil {
			t.Fatal(err)
		}
		return found.TableNames
	}
}

func TestStackAnswersAndLeavesNothingBehind(t *testing.T) {
	tables := besideADatabase(t)
	var progress strings.Builder
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var logsTo io.Writer
	s, err := Start(t.Context(), Options{Progress: &progress, FunctionLog: io.Discard, Emulator: func(o *emulator.Options) { logsTo = o.Log }})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(s.URL() + "/payments/1") //nolint:noctx // a test's request
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request without a token: %d, %v; want 401", resp.StatusCode, err)
	}
	if _, locked := logsTo.(*lockedWriter); !locked {
		t.Errorf("the emulator logs to a %T; want one with a lock, since the event sources write there too", logsTo)
	}
	own := []string{s.Table("AccountsTable"), s.Table("IdempotencyTable"), s.Table("PaymentsTable"), s.Table("ReceiptsTable"), s.Table("TransfersTable")}
	if got := tables(); !slices.Equal(got, own) || !strings.HasPrefix(own[0], "local-") {
		t.Errorf("the tables are %v; want %v, under names of their own", got, own)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if left := tables(); len(left) > 0 {
		t.Errorf("tables are left behind: %v", left)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, want := range []string{"building PaymentsFunction", "building RefundsFunction", "building TransfersFunction", "starting DynamoDB Local"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("the progress is %q; it should say %q", &progress, want)
		}
	}
}

func TestTakenPortIsNamedAndNothingIsLeftBehind(t *testing.T) {
	tables := besideADatabase(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nothing was accepted
	s, err := Start(t.Context(), Options{Port: taken.Addr().(*net.TCPAddr).Port, Progress: io.Discard, FunctionLog: io.Discard})
	if err == nil {
		t.Fatal(s.URL(), "is taken, and the stack started on it", s.Stop())
	}
	if !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("Start says %q; it should name %s", err, taken.Addr())
	}
	if left := tables(); len(left) > 0 {
		t.Errorf("tables are left behind: %v", left)
	}
}

func TestOutsideACheckoutTheErrorSaysWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Start(t.Context(), Options{Progress: io.Discard}); err == nil || !strings.Contains(err.Error(), "run this from one") {
		t.Errorf("Start = %v; want an error that says where to run it", err)
	}
}

func TestTokenNamesItsUser(t *testing.T) {
	parts := strings.Split(Token("alice"), ".")
	if len(parts) != 3 || parts[2] != "" {
		t.Fatalf("the token has the parts %q; want three, the last empty: it is unsigned", parts)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]string
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	if claims["sub"] != "alice" || claims["iss"] != Issuer {
		t.Errorf("the claims are %v", claims)
	}
}
