package dynamostore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// sent is a request as it was sent.
type sent struct {
	method, url, host string
	header            http.Header
	length            int64
	body              string
	bySDK             bool // whether the SDK's middleware made it
}

// recorder is an HTTP client that records the requests and responds to them. It returns the parts
// of answers that were put.
type recorder struct {
	mu   sync.Mutex
	sent []sent
	kept map[string]json.RawMessage // the items of the PutItems, by their ids
}

func (c *recorder) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, sent{r.Method, r.URL.String(), r.Host, r.Header.Clone(), r.ContentLength, string(body), madeBySDK()})
	var of struct {
		Item json.RawMessage
		Key  map[string]struct{ S string }
	}
	if err := json.Unmarshal(body, &of); err != nil {
		return nil, err
	}
	if of.Item != nil {
		var it map[string]struct{ S string }
		_ = json.Unmarshal(of.Item, &it) // members that are not strings don't matter
		c.kept[it[attrID].S] = of.Item
	}
	if item, ok := c.kept[of.Key[attrID].S]; ok && strings.HasSuffix(r.Header.Get("X-Amz-Target"), opGetItem) {
		return answer(200, `{"Item":`+string(item)+`}`), nil
	}
	return good(r, nil)
}

// take returns the requests since the last call of take. It sorts them, because parts are sent
// concurrently.
func (c *recorder) take(tb rapid.TB) []sent {
	tb.Helper()
	c.mu.Lock()
	all := c.sent
	c.sent = nil
	c.mu.Unlock()
	slices.SortStableFunc(all, func(a, b sent) int {
		return strings.Compare(a.header.Get(fieldTarget)+canonical(tb, a.body), b.header.Get(fieldTarget)+canonical(tb, b.body))
	})
	return all
}

// canonical returns a JSON text in a canonical form.
func canonical(tb rapid.TB, text string) string {
	tb.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatalf("%v in %q", err, text)
	}
	again, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(again)
}

// madeBySDK reports whether the SDK's client makes the current request.
func madeBySDK() bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "smithy-go/transport/http.ClientHandler") {
			return true
		}
		if !more {
			return false
		}
	}
}

// settings returns clients with different options. Both transports must send the same requests for
// each of them.
func settings() map[string]func(*dynamodb.Options) {
	account := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: "SESSION", AccountID: "111122223333"}, nil
	})
	return map[string]func(*dynamodb.Options){
		"static credentials": func(*dynamodb.Options) {},
		"a session's token": func(o *dynamodb.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider("AKID", "SECRET", "a+/=")
		},
		"a cache":    func(o *dynamodb.Options) { o.Credentials = aws.NewCredentialsCache(o.Credentials) },
		"an account": func(o *dynamodb.Options) { o.Credentials = account },
		"an account preferred": func(o *dynamodb.Options) {
			o.Credentials, o.AccountIDEndpointMode = account, "preferred"
		},
		"no account preferred": func(o *dynamodb.Options) { o.AccountIDEndpointMode = "preferred" },
		"an account required": func(o *dynamodb.Options) {
			o.Credentials, o.AccountIDEndpointMode = account, "required"
		},
		"an account disabled": func(o *dynamodb.Options) {
			o.Credentials, o.AccountIDEndpointMode = account, "disabled"
		},
		"dual stack": func(o *dynamodb.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled },
		"FIPS":       func(o *dynamodb.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled },
		"both": func(o *dynamodb.Options) {
			o.EndpointOptions.UseDualStackEndpoint, o.EndpointOptions.UseFIPSEndpoint = aws.DualStackEndpointStateEnabled, aws.FIPSEndpointStateEnabled
		},
		"China":                              func(o *dynamodb.Options) { o.Region = "cn-north-1" },
		"a Region of none":                   func(o *dynamodb.Options) { o.Region = "local" },
		"an endpoint":                        func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:8000") },
		"an endpoint with a path":            func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("https://proxy.test/dynamodb/v1") },
		"an endpoint with a slash":           func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("https://proxy.test:8443/") },
		"an endpoint with the port of https": func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("https://proxy.test:443") },
		"an endpoint with the port of http":  func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://proxy.test:80/") },
		"an endpoint with the other's port":  func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://proxy.test:443") },
		"an address":                         func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://[::1]:8000") },
		"a token with spaces":                func(o *dynamodb.Options) { o.Credentials = withToken("a  b") },
		"a token with a space before it":     func(o *dynamodb.Options) { o.Credentials = withToken(" a") },
		"a token with a tab after it":        func(o *dynamodb.Options) { o.Credentials = withToken("a\t") },
		"a signer that sends no token": func(o *dynamodb.Options) {
			o.Credentials = withToken("SESSION")
			o.HTTPSignerV4 = v4.NewSigner(func(s *v4.SignerOptions) { s.DisableSessionToken = true })
		},
		"an app":               func(o *dynamodb.Options) { o.AppID = "shop" },
		"a mode of retries":    func(o *dynamodb.Options) { o.RetryMode = aws.RetryModeAdaptive },
		"a mode of defaults":   func(o *dynamodb.Options) { o.DefaultsMode = aws.DefaultsModeInRegion },
		"an unchecked answer":  func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true },
		"an uncorrected clock": func(o *dynamodb.Options) { o.DisableClockSkewCorrection = true },
	}
}

func withToken(token string) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider("AKID", "SECRET", token)
}

func recording(option func(*dynamodb.Options), table string, by Transport, optFns ...func(*Options)) (*Store, *recorder) {
	c := &recorder{kept: map[string]json.RawMessage{}}
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")},
		option, func(o *dynamodb.Options) { o.HTTPClient = c })
	return New(client, table, append(optFns, func(o *Options) { o.Transport = by })...), c
}

// Both transports send the same requests for a call, including every header field, and sign them.
func TestE1_BothTransportsSendTheSame(t *testing.T) {
	for name, option := range settings() {
		for _, table := range []string{"records", "arn:aws:dynamodb:eu-west-1:444455556666:table/records"} {
			t.Run(name+" "+table[:3], func(t *testing.T) {
				sdk, sdks := recording(option, table, TransportSDK)
				ours, direct := recording(option, table, TransportDirect)
				if which, why := ours.Transport(); which != TransportDirect {
					t.Fatal(why)
				}
				for verb, call := range wireCalls() {
					for _, s := range []*Store{sdk, ours} {
						if err := call(t.Context(), s); err != nil {
							t.Fatalf("%s: %v", verb, err)
						}
					}
					// The SDK sends a transaction whose table is given by its ARN.
					bySDK := verb == "transaction" && table != "records"
					sameRequests(t, verb, sdks.take(t), direct.take(t), bySDK)
				}
			})
		}
	}
}

// Both transports send the same trace header: in Lambda with and without a trace, and outside
// Lambda.
func TestE1_BothTransportsSendTheTrace(t *testing.T) {
	for _, c := range []struct{ function, trace, want string }{
		{"payments", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a87bd80c:0,68fd508a:5", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a87bd80c:0,68fd508a:5"},
		{"payments", "Root=1 ü\n", "Root=1%20%C3%BC%0A"},
		{"payments", "", ""},
		{"", "Root=1", "Root=1"},
		{"not in Lambda", "Root=1", ""},
	} {
		t.Run(c.function+c.trace, func(t *testing.T) {
			t.Setenv("AWS_LAMBDA_FUNCTION_NAME", c.function)
			t.Setenv("_X_AMZN_TRACE_ID", c.trace)
			second := "Root=2"
			if c.function == "not in Lambda" {
				second = ""
				if err := os.Unsetenv("AWS_LAMBDA_FUNCTION_NAME"); err != nil { // t.Setenv restores the variable later
					t.Fatal(err)
				}
			}
			sdk, sdks := recording(func(*dynamodb.Options) {}, "records", TransportSDK)
			ours, direct := recording(func(*dynamodb.Options) {}, "records", TransportAuto)
			if which, why := ours.Transport(); which != TransportDirect {
				t.Fatal(why)
			}
			for _, next := range []string{c.trace, "Root=2", c.trace, ""} { // Lambda sets the variable for each invocation
				t.Setenv("_X_AMZN_TRACE_ID", next)
				for _, s := range []*Store{sdk, ours} {
					if _, err := s.Acquire(t.Context(), claim); err != nil {
						t.Fatal(err)
					}
				}
				requests := direct.take(t)
				if got, want := requests[0].header.Get(fieldTrace), map[string]string{c.trace: c.want, "Root=2": second, "": ""}[next]; got != want {
					t.Errorf("the trace is %q; want %q", got, want)
				}
				sameRequests(t, "acquire", sdks.take(t), requests, false)
			}
			if err := os.Unsetenv("_X_AMZN_TRACE_ID"); err != nil { // the trace of the rehearsal must not be sent with later requests
				t.Fatal(err)
			}
			for _, s := range []*Store{sdk, ours} {
				if _, err := s.Acquire(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			sameRequests(t, "acquire without a trace", sdks.take(t), direct.take(t), false)
		})
	}
}

// The account of the credentials may change from call to call.
func TestE1_BothTransportsFollowTheAccount(t *testing.T) {
	id := ""
	option := func(o *dynamodb.Options) {
		o.AccountIDEndpointMode = aws.AccountIDEndpointModePreferred
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID" + id, SecretAccessKey: "SECRET", AccountID: id}, nil
		})
	}
	sdk, sdks := recording(option, "records", TransportSDK)
	ours, direct := recording(option, "records", TransportDirect)
	for _, id = range []string{"111122223333", "111122223333", "", "444455556666", "111122223333"} {
		for verb, call := range wireCalls() {
			for _, s := range []*Store{sdk, ours} {
				if err := call(t.Context(), s); err != nil {
					t.Fatalf("%s: %v", verb, err)
				}
			}
			sameRequests(t, verb, sdks.take(t), direct.take(t), false)
		}
	}
}

// sameRequests fails the test unless both lists have the same requests, except for values that
// differ each time. The direct requests must have the signature that the SDK would have made.
func sameRequests(tb rapid.TB, what string, sdks, ours []sent, bySDK bool) {
	tb.Helper()
	if len(sdks) != len(ours) || len(ours) == 0 {
		tb.Fatalf("%s: %d requests; the SDK makes %d", what, len(ours), len(sdks))
	}
	for i := range ours {
		a, b := &sdks[i], &ours[i]
		if !a.bySDK || b.bySDK != bySDK {
			tb.Errorf("%s: made by the SDK: %v and %v; want true and %v", what, a.bySDK, b.bySDK, bySDK)
		}
		if diff := cmp.Diff(canonical(tb, a.body), canonical(tb, b.body)); diff != "" {
			tb.Errorf("%s: SDK - direct +:\n%s", what, diff)
		}
		if a.method != b.method || a.url != b.url || a.host != b.host || b.length != int64(len(b.body)) {
			tb.Errorf("%s: %s %s (%s) of %d bytes, which has %d; want %s %s (%s)", what, b.method, b.url, b.host, b.length, len(b.body), a.method, a.url, a.host)
		}
		h := b.header.Clone()
		for _, each := range []string{fieldInvocation, fieldDate, fieldSignature} {
			if len(h[each]) != 1 || h.Get(each) == "" {
				tb.Errorf("%s: %s is %q", what, each, h[each])
			}
			h[each] = a.header[each]
		}
		if diff := cmp.Diff(a.header, h); diff != "" {
			tb.Errorf("%s: SDK - direct +:\n%s", what, diff)
		}
		if want := signed(tb, a, b); want != b.header.Get(fieldSignature) {
			tb.Errorf("%s: signed as\n%s\nwant\n%s", what, b.header.Get(fieldSignature), want)
		}
	}
}

// signed returns the signature that the SDK's signer makes for the SDK's request with the date, the
// invocation id and the body of ours.
func signed(tb rapid.TB, sdks, ours *sent) string {
	tb.Helper()
	r, err := http.NewRequestWithContext(context.Background(), sdks.method, sdks.url, strings.NewReader(ours.body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header = sdks.header.Clone()
	r.Header.Del(fieldSignature)
	r.Header.Set(fieldInvocation, ours.header.Get(fieldInvocation))
	at, err := time.Parse("20060102T150405Z", ours.header.Get(fieldDate))
	if err != nil {
		tb.Fatal(err)
	}
	_, scope, _ := strings.Cut(sdks.header.Get(fieldSignature), "Credential=")
	parts := strings.Split(scope, "/") // key id, day, Region, service
	sum := sha256.Sum256([]byte(ours.body))
	creds := aws.Credentials{AccessKeyID: parts[0], SecretAccessKey: "SECRET", SessionToken: sdks.header.Get(fieldToken)}
	if err := v4.NewSigner().SignHTTP(context.Background(), creds, r, hex.EncodeToString(sum[:]), parts[3], parts[2], at); err != nil {
		tb.Fatal(err)
	}
	return r.Header.Get(fieldSignature)
}

// wireCalls returns a call for each kind of request that a store sends.
func wireCalls() map[string]func(context.Context, *Store) error {
	completing := func(r lambdaidem.Result, option func(*Options)) func(context.Context, *Store) error {
		return func(ctx context.Context, s *Store) error {
			plain := s.opts
			defer func() { s.opts = plain }()
			option(&s.opts)
			rec, err := s.Complete(ctx, lease, r)
			if err != nil {
				return err
			}
			_, err = s.Load(ctx, rec)
			return err
		}
	}
	as := func(*Options) {}
	failed := lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, At: result.At, Expires: result.Expires,
		Failure: &lambdaidem.Failure{Code: "card_declined", Type: "CardError", Message: "declined\u2028", Status: 402}}
	var calls = map[string]func(context.Context, *Store) error{
		"complete with text":    completing(result, as),
		"complete with binary":  completing(withValue([]byte{0xff, 0, 0xfe}), as),
		"complete with nothing": completing(withValue(nil), as),
		"complete with empty":   completing(withValue([]byte{}), as),
		"complete with failure": completing(failed, as),
		"complete compressed":   completing(withValue(bytes.Repeat([]byte("again and "), 1000)), func(o *Options) { o.CompressFrom = 1 }),
		"complete in parts":     completing(result, func(o *Options) { o.MaxInline = 1 }),
		"failure in parts":      completing(failed, func(o *Options) { o.MaxInline = 1 }),
		"save steps": func(ctx context.Context, s *Store) error {
			_, err := s.SaveSteps(ctx, lease, lambdaidem.Steps{"text": []byte("ü"), "binary": {0xff}, "none": nil}, now)
			return err
		},
		"transaction": func(ctx context.Context, s *Store) error {
			tx, _ := s.Begin(strings.NewReader(strings.Repeat("r", 64))).(*transaction)
			enlistEveryKind(tx.enlisted)
			tx.Seal(lambdaidem.OutcomeSucceeded)
			_, err := tx.Commit(ctx, &lambdaidem.Completion{Lease: lease, Result: result})
			return err
		},
	}
	for name, verb := range verbs {
		if !strings.HasPrefix(name, "com") {
			calls[name] = func(ctx context.Context, s *Store) error { _, err := verb(ctx, s); return err }
		}
	}
	return calls
}

// enlistEveryKind enlists a write of each kind, with every member that it can have.
func enlistEveryKind(tx *Tx) {
	every := map[string]types.AttributeValue{
		"id": str("order#1"), "n": number(-1), "b": &types.AttributeValueMemberB{Value: []byte{0, 0xff}}, "t": &types.AttributeValueMemberBOOL{Value: true},
		"z": &types.AttributeValueMemberNULL{Value: true}, "ss": &types.AttributeValueMemberSS{Value: []string{"a", "ü\x00"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {}}}, "m": &types.AttributeValueMemberM{Value: attributes{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{str(""), number(0)}}}},
	}
	tx.Put("put", types.Put{TableName: aws.String("orders"), Item: every})
	tx.PutValue("put if", "orders", map[string]any{"id": "2", "at": 1.5, "tags": []string{"<&>"}}).If("attribute_not_exists(#id)", Args{"#id": "id"})
	tx.UpdateValue("update", "orders", map[string]any{"id": "3"}, "SET #a = :a ADD n :n", Args{"#a": "paid", ":a": []byte("x"), ":n": 1}).If("n < :m", Args{":m": 5})
	tx.Update("bare update", types.Update{TableName: aws.String("orders"), Key: attributes{"id": str("4")}, UpdateExpression: aws.String("REMOVE paid")})
	tx.DeleteValue("delete", "orders", map[string]any{"id": "5"})
	tx.DeleteValue("delete if", "orders", map[string]any{"id": "6"}).If("paid = :f", Args{":f": false})
	tx.CheckValue("check", "customers", map[string]any{"id": "7"}, "attribute_exists(id)", nil)
	tx.CheckValue("check with values", "customers", map[string]any{"id": "8"}, "#s = :s", Args{"#s": "state", ":s": "good"})
}

// Both transports write any record in the same way.
func TestE1_BothTransportsWriteTheSameForAnyRecord(t *testing.T) {
	none := func(*dynamodb.Options) {}
	sdk, sdks := recording(none, "records", TransportSDK, renamed)
	ours, direct := recording(none, "records", TransportDirect, renamed)
	anyText := rapid.OneOf(rapid.StringN(1, 40, 120), rapid.SampledFrom([]string{"\u2028", "\x00\x1f", `"\`, "\xff", "😀", "a\xc3"}))
	rapid.Check(t, func(t *rapid.T) {
		c := lambdaidem.Claim{
			ID: anyText.Draw(t, "id"), Scope: rapid.String().Draw(t, "scope"), Fingerprint: anyText.Draw(t, "fingerprint"),
			Token: anyText.Draw(t, "token"), Now: moment(t, "now"), LeaseEnd: moment(t, "lease end"), Expires: moment(t, "expires"),
			Invocation: anyText.Draw(t, "invocation"),
		}
		if rapid.Bool().Draw(t, "over") {
			current := claimed(c).record()
			current.State = rapid.SampledFrom([]lambdaidem.State{lambdaidem.InProgress, lambdaidem.Released}).Draw(t, "state")
			c.Over = &current
		}
		r := lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, At: moment(t, "at"), Expires: moment(t, "until"), Value: rapid.SliceOf(rapid.Byte()).Draw(t, "value")}
		if rapid.Bool().Draw(t, "failed") {
			r.Outcome, r.Value = lambdaidem.OutcomeFailed, nil
			r.Failure = &lambdaidem.Failure{Code: lambdaidem.Code(anyText.Draw(t, "code")), Message: anyText.Draw(t, "message"), Status: rapid.Int().Draw(t, "status")}
		}
		steps := lambdaidem.Steps(rapid.MapOfN(rapid.StringN(1, 20, 40), rapid.SliceOf(rapid.Byte()), 0, 3).Draw(t, "steps"))
		l := lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: moment(t, "released until"), LastFailure: anyText.Draw(t, "last failure")}
		for _, s := range []*Store{sdk, ours} {
			_, _ = s.Acquire(t.Context(), c) // the response is the record of another attempt
			_, _ = s.Complete(t.Context(), l, r)
			_, _ = s.Release(t.Context(), l, c.Now)
			_, _ = s.SaveSteps(t.Context(), l, steps, c.Now)
			_, _ = s.Get(t.Context(), c.ID, c.Now)
			_, _ = committing(s).Commit(t.Context(), &lambdaidem.Completion{Lease: l, Result: r, Claim: &c})
		}
		a, b := sdks.take(t), direct.take(t)
		var first []sent // after a response that the direct transport can't read, the SDK continues
		for _, r := range b {
			if !r.bySDK {
				first = append(first, r)
			}
		}
		if len(a) != len(b) || len(first) != 6 {
			t.Fatalf("%d requests, %d of them made here; the SDK makes %d", len(b), len(first), len(a))
		}
		sameRequests(t, "any record", a, b, false)
	})
}

// An update sets each of its attributes that the item has, and removes the others. Both transports
// send the same expression.
func TestL6_AnUpdateRemovesWhatTheItemHasNot(t *testing.T) {
	client, _ := inMemory()
	s := New(client, "test")
	for name, w := range map[string]*write{"takeover": &s.writes.takeover, "completion": &s.writes.completion, "release": &s.writes.release} {
		values := attributes{}
		set, removed, _ := strings.Cut(s.layout.expression(w.sets, claimed(claim), values), " REMOVE ")
		for i := range itemAttributes {
			a := &itemAttributes[i]
			if s.layout[i].name == "" { // an optional attribute that this table does not use
				continue
			}
			about, here := a.setBy&w.sets != 0, a.field(claimed(claim)).present()
			_, given := values[s.layout[i].value]
			if strings.Contains(set+", ", s.layout[i].assign+", ") != (about && here) || given != (about && here) ||
				strings.Contains(", "+removed+", ", ", "+a.placeholder+", ") != (about && !here) {
				t.Errorf("%s, %s: SET %s REMOVE %s", name, a.standard, set, removed)
			}
		}
	}
}
