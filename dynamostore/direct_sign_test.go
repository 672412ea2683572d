package dynamostore

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// What a signer does beside signing, it does for each request: it signs those itself.
func TestE1_ASignerThatDoesMoreIsAsked(t *testing.T) {
	count := 0
	for name, option := range map[string]func(*dynamodb.Options){
		"logging": func(o *dynamodb.Options) {
			o.HTTPSignerV4 = v4.NewSigner(func(s *v4.SignerOptions) {
				s.LogSigning = true
				s.Logger = logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
					if strings.Contains(fmt.Sprintf(format, v...), opPutItem) {
						count++
					}
				})
			})
		},
		"the user's own": func(o *dynamodb.Options) {
			o.HTTPSignerV4 = signerFunc(func(r *http.Request) {
				if strings.Contains(r.Header.Get(fieldTarget), opPutItem) {
					count++
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			count = 0
			s, sent := recording(option, "records", TransportDirect)
			for range 3 {
				if _, err := s.Acquire(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			if all := sent.take(t); count != 3 || len(all) != 3 || all[0].bySDK {
				t.Errorf("of %d requests it signed %d; want 3, and made here", len(all), count)
			}
		})
	}
}

// signerFunc signs as the SDK does, and says so.
type signerFunc func(*http.Request)

func (f signerFunc) SignHTTP(ctx context.Context, creds aws.Credentials, r *http.Request, hash, service, region string, at time.Time, optFns ...func(*v4.SignerOptions)) error {
	f(r)
	return v4.NewSigner().SignHTTP(ctx, creds, r, hash, service, region, at, optFns...)
}

// Requests that are made at once share nothing: each has the signature of its own
// bytes, by the credentials of its own moment.
func TestE1_RequestsAtOnceAreSignedEachByItself(t *testing.T) {
	var turn sync.Mutex
	n := 0
	rotating := func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			turn.Lock()
			defer turn.Unlock()
			n++
			return aws.Credentials{AccessKeyID: fmt.Sprint("AKID", n%3), SecretAccessKey: "SECRET", SessionToken: strings.Repeat("S", n%2*(1+n%7))}, nil
		})
	}
	s, sent := recording(rotating, "records", TransportDirect)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				c := claim
				c.ID = fmt.Sprint("lambdaidem#", i, strings.Repeat("x", j))
				if _, err := s.Acquire(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	requests := sent.take(t)
	for i := range requests {
		if got, want := requests[i].header.Get(fieldSignature), signed(t, &requests[i], &requests[i]); got != want {
			t.Fatalf("signed as\n%s\nwant\n%s", got, want)
		}
	}
	if len(requests) != 160 {
		t.Errorf("%d requests; want 160", len(requests))
	}
}
