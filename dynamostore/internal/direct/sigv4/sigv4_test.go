package sigv4_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct/sigv4"
)

// This is the example post-vanilla of AWS's test suite for Signature Version 4.
func TestE1_SignsAWSsOwnExample(t *testing.T) {
	const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	canonical := "POST\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n" + nothing
	const want = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
		"SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"

	var s sigv4.Signer
	creds := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	for range 2 { // with a new key, and with the cached one
		if got := s.Authorization(&creds, sigv4.Scope{Region: "us-east-1", Service: "service"}, "20150830T123600Z", "host;x-amz-date", []byte(canonical)); got != want {
			t.Errorf("signed as\n%s\nwant\n%s", got, want)
		}
	}
}

// call has the parameters of a signature.
type call struct {
	creds  aws.Credentials
	of     sigv4.Scope
	at     time.Time
	body   string
	header map[string]string
}

func (c *call) bySDK(tb rapid.TB) string {
	tb.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://dynamodb.test/", strings.NewReader(c.body))
	if err != nil {
		tb.Fatal(err)
	}
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	sum := sha256.Sum256([]byte(c.body))
	if err := v4.NewSigner().SignHTTP(context.Background(), c.creds, r, hex.EncodeToString(sum[:]), c.of.Service, c.of.Region, c.at); err != nil {
		tb.Fatal(err)
	}
	return r.Header.Get("Authorization")
}

// byUs signs with Signer. It builds the canonical request in the simplest way.
func (c *call) byUs(s *sigv4.Signer) string {
	date := string(sigv4.AppendDate(nil, c.at))
	fields := map[string]string{"host": "dynamodb.test", "x-amz-date": date}
	if len(c.body) > 0 {
		fields["content-length"] = strconv.Itoa(len(c.body))
	}
	if c.creds.SessionToken != "" {
		fields["x-amz-security-token"] = c.creds.SessionToken
	}
	for name, value := range c.header {
		fields[strings.ToLower(name)] = value
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	canonical := "POST\n/\n\n"
	for _, name := range names {
		canonical += name + ":" + fields[name] + "\n"
	}
	signed := strings.Join(names, ";")
	sum := sha256.Sum256([]byte(c.body))
	canonical += "\n" + signed + "\n" + hex.EncodeToString(sum[:])
	return s.Authorization(&c.creds, c.of, date, signed, []byte(canonical))
}

var calls = rapid.Custom(func(t *rapid.T) *call {
	word := func(label string) string { return rapid.StringMatching(`[A-Za-z0-9+/=-]{1,40}`).Draw(t, label) }
	return &call{
		creds: aws.Credentials{
			AccessKeyID: rapid.SampledFrom([]string{"AKID", word("id")}).Draw(t, "whose"), SecretAccessKey: rapid.SampledFrom([]string{"SECRET", word("secret")}).Draw(t, "secret"),
			SessionToken: rapid.SampledFrom([]string{"", word("session")}).Draw(t, "session"),
		},
		of:     sigv4.Scope{Region: rapid.SampledFrom([]string{"eu-west-1", "us-east-1"}).Draw(t, "region"), Service: rapid.SampledFrom([]string{"dynamodb", "dax"}).Draw(t, "service")},
		at:     time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0).In(time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone"))),
		body:   rapid.String().Draw(t, "body"),
		header: rapid.MapOfN(rapid.StringMatching(`X-[A-Z][a-z]{1,8}`), rapid.StringMatching(`[!-~]{0,12}`), 0, 5).Draw(t, "header"),
	}
})

// Whatever is signed, and whatever was signed before, the signature equals that of the SDK.
func TestE1_SignsAsTheSDKDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sigv4.Signer
		for _, c := range rapid.SliceOfN(calls, 1, 4).Draw(t, "calls") {
			if got, want := c.byUs(&s), c.bySDK(t); got != want {
				t.Fatalf("signed as\n%s\nwant\n%s", got, want)
			}
		}
	})
}

// A change of any part of the signing key leads to a new key: one Signer signs for rotating
// credentials, and after midnight.
func TestE1_EachPartOfTheKeyCounts(t *testing.T) {
	first := call{creds: aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, of: sigv4.Scope{Region: "eu-west-1", Service: "dynamodb"},
		at: time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC), body: "{}"}
	for name, change := range map[string]func(*call){
		"id":      func(c *call) { c.creds.AccessKeyID = "AKIE" },
		"secret":  func(c *call) { c.creds.SecretAccessKey = "SECRES" },
		"region":  func(c *call) { c.of.Region = "eu-west-2" },
		"service": func(c *call) { c.of.Service = "dax" },
		"day":     func(c *call) { c.at = c.at.Add(time.Second) },
		"year":    func(c *call) { c.at = c.at.AddDate(1, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			var s sigv4.Signer
			second := first
			change(&second)
			for _, c := range []call{first, second, first} {
				if got, want := c.byUs(&s), c.bySDK(t); got != want {
					t.Errorf("signed as\n%s\nwant\n%s", got, want)
				}
			}
		})
	}
}

// Many goroutines sign concurrently, with two credentials in turn.
func TestE1_SignsForManyAtOnce(t *testing.T) {
	var s sigv4.Signer
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			c := call{creds: aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: strconv.Itoa(i % 2)}, of: sigv4.Scope{Region: "eu-west-1", Service: "dynamodb"},
				at: time.Unix(0, 0), body: strconv.Itoa(i)}
			want := c.bySDK(t)
			for range 100 {
				if got := c.byUs(&s); got != want {
					t.Errorf("signed as\n%s\nwant\n%s", got, want)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestE1_DatesAsTheFormatSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-30_000_000_000, 200_000_000_000).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).
			In(time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone")))
		if got, want := string(sigv4.AppendDate([]byte("at "), at)), at.UTC().AppendFormat([]byte("at "), sigv4.TimeFormat); got != string(want) {
			t.Fatalf("%v is %s; want %s", at, got, want)
		}
	})
}

func BenchmarkAuthorization(b *testing.B) {
	var s sigv4.Signer
	creds := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}
	canonical := []byte(strings.Repeat("c", 500))
	b.ReportAllocs()
	for b.Loop() {
		s.Authorization(&creds, sigv4.Scope{Region: "eu-west-1", Service: "dynamodb"}, "20150830T123600Z", "host;x-amz-date", canonical)
	}
}
