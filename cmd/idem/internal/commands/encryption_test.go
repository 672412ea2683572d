package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyFile writes a file with the lines and returns its name.
func keyFile(t *testing.T, lines string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// encrypting makes the desk's functions encrypt answers, and returns the name of a file with their
// keys.
func (d *desk) encrypting() string {
	secret := bytes.Repeat([]byte{7}, 32)
	d.store = dynamostore.New(d.client, d.table, func(o *dynamostore.Options) {
		o.Encryption = dynamostore.StaticKeys(dynamostore.Key{ID: "k1", Secret: secret})
	})
	d.guard = lambdaidem.New(d.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, d.now
	})
	return keyFile(d.t, "# the functions' keys\n\nk1 "+base64.StdEncoding.EncodeToString(secret)+"\n")
}

// Show decrypts answers and steps if it has the functions' keys, and otherwise says what it
// can't show. The answer of settle is encrypted too.
func TestS1_TheCommandDecryptsWhereItIsAllowedTo(t *testing.T) {
	d := openDesk(t)
	file := d.encrypting()
	d.pay(d.guard, "k", paid)
	d.pay(d.held(), "dead", died)
	done, dead := d.view("k"), d.view("dead")
	if done.State != "completed" || done.Answer == nil || done.Answer.Unreadable == "" || done.Answer.Body != "" {
		t.Errorf("without a key the answer is %+v", done.Answer)
	}
	if string(dead.Steps["reserve"]) != "null" || dead.StepsUnread == "" {
		t.Errorf("without a key the steps are %s, %q", dead.Steps["reserve"], dead.StepsUnread)
	}
	d.idem("show", dead.ID).want(t, exitDone, "reserve: null", "steps unread", "this store can't read what is stored: it is encrypted, and this store has no Options.Encryption")
	d.idem("trace", dead.ID, "--then", "step:reserve => bank message charges").want(t, exitDone, "unknown: the steps of the record before can't be read", "has no Options.Encryption")

	settle := []string{"settle", dead.ID, "--token", dead.Token, "--reason", "TICKET-1", "--yes", "--status", "201", "--body", "settled by alice"}
	d.idem(settle...).want(t, exitUsage, "--key-file or --kms-key")

	// Even a record without steps shows that its functions encrypt, since it was acquired.
	d.pay(d.held(), "early", func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Uncertain(errLater)
	})
	early := d.view("early")
	d.idem("settle", early.ID, "--token", early.Token, "--reason", "r", "--yes", "--status", "200", "--body", "in plain text").want(t, exitUsage, "--key-file or --kms-key")
	d.idem("settle", early.ID, "--token", early.Token, "--reason", "r", "--yes", "--no-answer").want(t, exitDone, "none: ")

	t.Setenv("IDEM_KEY_FILE", file)
	if done = d.view("k"); done.Answer.Body != `{"id":"p-1"}` {
		t.Errorf("with the key the answer is %+v", done.Answer)
	}
	d.idem("show", dead.ID).want(t, exitDone, `reserve: "r-9"`)
	d.idem(settle...).want(t, exitDone, "completed: retries get its answer")
	if resp := d.pay(d.guard, "dead", paid); resp.StatusCode != 201 || resp.Body != "settled by alice" {
		t.Errorf("a retry gets %+v", resp)
	}
	// A flag takes precedence over the environment.
	d.idem("show", dead.ID, "--key-file", keyFile(t, "k2 "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32)))).want(t, exitDone, "the key is gone for good")
	t.Setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1") // nothing listens there
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	d.idem("show", dead.ID, "--kms-key", "alias/a", "--kms-context", "a=b").want(t, exitDone, "kmskeys: Decrypt under alias/a")
	d.idem("show", dead.ID, "--kms-key", "alias/a", "--kms-key", "alias/older").want(t, exitDone, "kmskeys: Decrypt under alias/older")
	t.Setenv("IDEM_KEY_FILE", "")
	d.idem("show", dead.ID, "-o", "json").want(t, exitDone, "unreadable")
}

// A record written by an older version does not say whether its functions encrypt answers, but
// encrypted steps show it.
func TestS1_ARecordWithEncryptedStepsIsNotSettledInPlainText(t *testing.T) {
	seen := dynamostore.Inspected{StepsUnread: errLater}
	if err := (&keys{}).checkFor(&app{}, seen, lambdaidem.Result{Value: []byte(`"paid"`)}); err == nil || !strings.Contains(err.Error(), "--key-file") {
		t.Errorf("settle without a key: %v", err)
	}
}

// Errors about keys don't contain the keys.
func TestS1_KeysThatAreNone(t *testing.T) {
	d := openDesk(t)
	t.Setenv("IDEM_KEY_FILE", "")
	swapped := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{5}, 32))
	for says, args := range map[string][]string{
		"no such file":                          {"--key-file", filepath.Join(t.TempDir(), "none")},
		"there is no key":                       {"--key-file", keyFile(t, "# nothing\n")},
		"line 2: it has 3 columns instead of 2": {"--key-file", keyFile(t, "\nk1 c2VjcmV0 c2VjcmV0\n")},
		"the second column is not base64":       {"--key-file", keyFile(t, "k1 se-cr_et!\n")},
		"its secret has 6 bytes":                {"--key-file", keyFile(t, "k1 c2VjcmV0\n")},
		"could be a secret":                     {"--key-file", keyFile(t, swapped+" k1\n")},
		"can't go together":                     {"--key-file", keyFile(t, "k1 c2VjcmV0\n"), "--kms-key", "alias/a"},
		"--kms-key is empty":                    {"--kms-key", ""},
		"--kms-context is of --kms-key":         {"--kms-context", "a=b"},
		"there is no record lambdaidem#x":       {"--kms-key", "alias/a", "--kms-key", "alias/older"}, // no record, so no key is used
	} {
		got := d.idem(append([]string{"show", "lambdaidem#x"}, args...)...)
		if got.code == exitDone {
			t.Errorf("%v: it is done", args)
		}
		got.want(t, got.code, says)
		for _, secret := range []string{"c2VjcmV0", "se-cr_et", swapped} {
			if strings.Contains(got.err+got.out, secret) {
				t.Errorf("it shows a key: %s", got.err)
			}
		}
	}
}
