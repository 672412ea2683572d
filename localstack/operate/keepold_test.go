package operate_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The numbers of the page's rule, for a function with the longest timeout of Lambda Managed
// Instances.
const (
	recordTTL       = 24 * time.Hour
	functionTimeout = 90 * time.Minute
	exactWait       = recordTTL + functionTimeout + 3*time.Second // the page's exact sum: with MaxSkew and a second
)

// release is one deployed version of a function, of which only the settings matter.
type release struct {
	store func(*dynamostore.Options)
	guard func(*lambdaidem.Options)
}

// replacement is a setting of a function that is replaced in steps. old is the version before,
// reading is the first version that no longer writes records under the old setting but still reads
// them, and fresh is the version that can't read them.
type replacement struct {
	old, reading, fresh release
	refused             error // what fresh returns for a record under the old setting
}

func replacements() map[string]replacement {
	keys := func(ids ...string) release {
		var all []dynamostore.Key
		for _, id := range ids {
			all = append(all, dynamostore.Key{ID: id, Secret: []byte(strings.Repeat(id[:1], 32))})
		}
		return release{store: func(o *dynamostore.Options) { o.Encryption = dynamostore.StaticKeys(all...) }}
	}
	only := release{store: func(o *dynamostore.Options) { keys("a").store(o); o.Encryption.Only = true }}
	secrets := func(all ...string) release {
		return release{guard: func(o *lambdaidem.Options) {
			for _, s := range all {
				o.FingerprintSecrets = append(o.FingerprintSecrets, []byte(s))
			}
		}}
	}
	const older, newer = "32 random bytes, kept in secret.", "32 others, kept in secret, too!!"
	return map[string]replacement{
		"a key of Encryption":      {keys("a", "b"), keys("b", "a"), keys("b"), lambdaidem.ErrAnswerUnavailable},
		"Encryption begins":        {release{}, keys("a"), only, lambdaidem.ErrAnswerUnavailable},
		"Encryption ends":          {keys("a"), keys("a"), release{}, lambdaidem.ErrAnswerUnavailable},
		"a secret of fingerprints": {secrets(older, newer), secrets(newer, older), secrets(newer), lambdaidem.ErrPayloadMismatch},
	}
}

// slowWire is an HTTP client for a database in memory. While holdBack is set, it delivers requests
// that change items holdBack later, and their senders get no reply.
type slowWire struct {
	memdynamo.Client

	holdBack atomic.Int64 // a time.Duration
}

func (w *slowWire) Do(req *http.Request) (*http.Response, error) {
	delay := time.Duration(w.holdBack.Load())
	if delay == 0 {
		return w.Client.Do(req)
	}
	op, body, err := memdynamo.Request(req)
	if err != nil {
		return nil, err
	}
	time.AfterFunc(delay, func() { w.DB.Serve(op, body) })
	return nil, errors.New("connection reset by peer")
}

// openKeepingTable returns a client of a table of records in memory.
func openKeepingTable(t *testing.T) (*slowWire, *dynamodb.Client) {
	t.Helper()
	wire := &slowWire{Client: memdynamo.Client{DB: memdynamo.New(time.Now)}}
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", HTTPClient: wire, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})
	if err := dynamostore.CreateTable(t.Context(), client, "idempotency"); err != nil {
		t.Fatal(err)
	}
	return wire, client
}

// pay makes a guarded payment in the given version of a function. The handler takes the given time.
func (r release) pay(t *testing.T, client *dynamodb.Client, runs *int, takes time.Duration) (string, error) {
	t.Helper()
	store := dynamostore.New(client, "idempotency", func(o *dynamostore.Options) {
		if r.store != nil {
			r.store(o)
		}
	})
	guard := version(store, func(o *lambdaidem.Options) {
		if o.TTL = recordTTL; r.guard != nil {
			r.guard(o)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), functionTimeout)
	defer cancel()
	return lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "pay", Key: "k", Payload: "40 EUR"}, func(context.Context) (string, error) {
		*runs++
		time.Sleep(takes)
		return "paid", nil
	})
}

// An attempt that began just before a deployment ends at its function's timeout, under the old
// setting. While its record lasts, a version that knows only the new setting refuses the retry: the
// TTL and 15 minutes after the deployment are too early, and so are some seconds before the page's
// exact sum. After that sum no such record is left, even if the write that completed it arrived late.
func TestD4_OperateMD_OldRecordsHaveExpiredAfterTheWait(t *testing.T) {
	for name, r := range replacements() {
		for late, holdBack := range map[string]time.Duration{"": 0, ", completed late": 14*time.Minute + 30*time.Second} {
			t.Run(name+late, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					wire, client := openKeepingTable(t)
					runs := 0
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						if holdBack > 0 {
							time.AfterFunc(functionTimeout-2*time.Second, func() { wire.holdBack.Store(int64(holdBack)) })
						}
						if _, err := r.old.pay(t, client, &runs, functionTimeout-time.Second); (err == nil) != (holdBack == 0) {
							t.Errorf("the first attempt: %v", err)
						}
					}()
					time.Sleep(time.Second)
					deployed := time.Now() // r.reading runs everywhere, and r.old begins no more attempts
					<-ended
					wire.holdBack.Store(0)
					time.Sleep(holdBack)
					if answer, err := r.reading.pay(t, client, &runs, 0); answer != "paid" || err != nil || runs != 1 {
						t.Errorf("after the deployment a retry got %q, %v after %d runs; want a replay", answer, err, runs)
					}
					for _, early := range []time.Duration{recordTTL + 15*time.Minute, exactWait - 6*time.Second} {
						time.Sleep(time.Until(deployed.Add(early)))
						if _, err := r.fresh.pay(t, client, &runs, 0); !errors.Is(err, r.refused) || runs != 1 {
							t.Errorf("%v after the deployment, a retry got %v after %d runs; want %v", early, err, runs, r.refused)
						}
					}
					time.Sleep(time.Until(deployed.Add(exactWait)))
					if _, err := r.fresh.pay(t, client, &runs, 0); err != nil || runs != 2 {
						t.Errorf("after the wait, a retry got %v after %d runs; want a new run", err, runs)
					}
				})
			})
		}
	}
}

// Every page and comment that says how long something old must be kept says it in the same words.
func TestD4_OperateMD_HowLongToKeepWhatIsOldIsOneRule(t *testing.T) {
	const (
		rule  = "the TTL, the function's timeout and 15 minutes"
		short = "old records have expired"
	)
	section := readPage(t).section(t, "Something changes in a deployment")
	if !strings.Contains(plain(section), "Old records have expired when "+rule+" have passed") {
		t.Errorf("the page does not say when old records have expired: %s", section)
	}
	texts := map[string]string{"docs/operate.md": section}
	for path, words := range map[string]string{
		"docs/encryption.md":             rule,
		"docs/errors.md":                 short,
		"docs/idem.md":                   short,
		"dynamostore/encryption.go":      rule,
		"dynamostore/kmskeys/kmskeys.go": rule,
		"lambdaidem/options.go":          rule,
	} {
		if texts[path] = readFile(t, "../../"+path); !strings.Contains(plain(texts[path]), words) {
			t.Errorf("%s does not say %q", path, words)
		}
	}
	for path, text := range texts {
		if found := regexp.MustCompile("(?i)[^.;|]*TTL (has passed|and 15 minutes)[^.;|]*").FindString(plain(text)); found != "" {
			t.Errorf("%s says %q, which is too short", path, found)
		}
	}
}

var markup = regexp.MustCompile(`\s+(// *)?`)

// plain returns a text of Markdown or of comments without line breaks, emphasis and code marks.
func plain(text string) string {
	return strings.NewReplacer("`", "", "**", "").Replace(markup.ReplaceAllString(text, " "))
}
