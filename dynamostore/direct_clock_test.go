package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// both runs the test with each transport.
func both(t *testing.T, test func(t *testing.T, by func(*Options))) {
	t.Helper()
	for _, by := range []Transport{TransportDirect, TransportSDK} {
		t.Run(string(by), func(t *testing.T) { test(t, func(o *Options) { o.Transport = by }) })
	}
}

// theirClock is a DynamoDB that refuses requests with a wrong date. Its clock is ahead of the local
// clock.
type theirClock struct {
	ahead    time.Duration
	requests int
	refused  int
}

func (c *theirClock) Do(r *http.Request) (*http.Response, error) {
	c.requests++
	theirs := time.Now().Add(c.ahead)
	at, err := time.Parse("20060102T150405Z", r.Header.Get(fieldDate))
	if err != nil {
		return nil, err
	}
	resp, err := good(r, nil)
	if off := theirs.Sub(at).Abs(); off > 5*time.Minute {
		c.refused++
		resp, err = fail(400, "InvalidSignatureException", "Signature expired")(r, nil)
	}
	if err == nil {
		resp.Header.Set("Date", theirs.UTC().Format(http.TimeFormat))
	}
	return resp, err
}

// After the first response, a wrong local clock is corrected. When the local clock is set right,
// the correction is removed after one refused request. In both cases, the next call succeeds at its
// first attempt.
func TestX5_AWrongClockIsCorrected(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 6 * time.Minute} {
		both(t, func(t *testing.T, by func(*Options)) {
			synctest.Test(t, func(t *testing.T) {
				theirs := &theirClock{ahead: ahead}
				client, _ := inMemory()
				s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = theirs }), "test", quick, by)
				for i, want := range []theirClock{{requests: 2, refused: 1}, {requests: 3, refused: 1}, {requests: 4, refused: 1}} {
					if _, err := s.Acquire(t.Context(), claim); err != nil {
						t.Fatalf("off by %v, call %d: %v", ahead, i+1, err)
					}
					if theirs.requests != want.requests || theirs.refused != want.refused {
						t.Errorf("off by %v, call %d: %d requests so far, %d refused; want %d and %d", ahead, i+1, theirs.requests, theirs.refused, want.requests, want.refused)
					}
					time.Sleep(time.Minute)
				}
				theirs.ahead, theirs.requests, theirs.refused = 0, 0, 0 // the local clock is right again
				for i, want := range []theirClock{{requests: 2, refused: 1}, {requests: 3, refused: 1}} {
					if _, err := s.Acquire(t.Context(), claim); err != nil {
						t.Fatalf("healed, call %d: %v", i+1, err)
					}
					if theirs.requests != want.requests || theirs.refused != want.refused {
						t.Errorf("healed, call %d: %d requests so far, %d refused; want %d and %d", i+1, theirs.requests, theirs.refused, want.requests, want.refused)
					}
				}
			})
		})
	}
}

// The clock is not corrected if an option forbids it, or if the response comes from a cache or has
// no valid date.
func TestX5_AClockIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		option func(*dynamodb.Options)
		header [2]string
	}{
		"by an option":  {func(o *dynamodb.Options) { o.DisableClockSkewCorrection = true }, [2]string{"X-Any", "thing"}},
		"from a cache":  {func(*dynamodb.Options) {}, [2]string{"Age", "1"}},
		"no date":       {func(*dynamodb.Options) {}, [2]string{"Date", ""}},
		"no valid date": {func(*dynamodb.Options) {}, [2]string{"Date", "yesterday"}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, by func(*Options)) {
				synctest.Test(t, func(t *testing.T) {
					var dates []string
					client, _ := inMemory()
					s := New(dynamodb.New(client.Options(), c.option, func(o *dynamodb.Options) {
						o.HTTPClient = doFunc(func(r *http.Request) (*http.Response, error) {
							dates = append(dates, r.Header.Get(fieldDate))
							resp := answer(200, `{}`)
							resp.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
							resp.Header.Set(c.header[0], c.header[1])
							return resp, nil
						})
					}), "test", by)
					for range 2 {
						if _, err := s.Acquire(t.Context(), claim); err != nil {
							t.Fatal(err)
						}
					}
					if ours := time.Now().UTC().Format("20060102T150405Z"); dates[0] != ours || dates[1] != ours {
						t.Errorf("dated %v; want %v", dates, ours)
					}
				})
			})
		})
	}
}

// Each attempt gets the credentials again, so credentials that expire during a call are replaced.
func TestX5_CredentialsMayChangeInMidCall(t *testing.T) {
	both(t, func(t *testing.T, by func(*Options)) {
		asked := 0
		var keys []string
		client, _ := inMemory()
		s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: fmt.Sprintf("KEY%d", len(keys)), SecretAccessKey: "SECRET", SessionToken: "S"}, nil
			})
			o.HTTPClient = doFunc(func(r *http.Request) (*http.Response, error) {
				asked++
				_, of, _ := strings.Cut(r.Header.Get(fieldSignature), "Credential=")
				key, _, _ := strings.Cut(of, "/")
				keys = append(keys, key)
				return [](func(*http.Request, dynamodb.HTTPClient) (*http.Response, error)){throttle, loseRequest, good}[asked-1](r, nil)
			})
		}), "test", quick, by)
		if _, err := s.Acquire(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(keys, " "); got != "KEY0 KEY1 KEY2" {
			t.Errorf("signed by %s; want each attempt by the credentials of its time", got)
		}
	})
}

// An attempt that gets no credentials sends nothing. Earlier attempts of the call still count.
//
// The direct transport hands the outcome of the first attempt to the SDK, and the SDK gets
// credentials before it reads this outcome. If it gets none, the outcome is never read, and the
// attempt counts as unknown. The direct transport is then more cautious than the SDK's.
func TestX8_CredentialsThatCantBeHad(t *testing.T) {
	missing := errors.New("no credentials here")
	const unknown, sure = false, true
	for _, c := range []struct {
		name  string
		by    Transport
		had   int // the number of times that credentials are available
		fault fault
		says  bool
		trips int
	}{
		{"never", TransportSDK, 0, good, sure, 0},
		{"never", TransportDirect, 0, good, sure, 0},
		{"after one that was throttled", TransportSDK, 1, throttle, sure, 1},
		{"after one that was throttled", TransportDirect, 2, throttle, sure, 1},
		{"before one that was throttled is read", TransportDirect, 1, throttle, unknown, 1},
		{"after one that was lost", TransportSDK, 1, loseRequest, unknown, 1},
		{"after one that was lost", TransportDirect, 2, loseRequest, unknown, 1},
		{"before one that was lost is read", TransportDirect, 1, loseRequest, unknown, 1},
		{"after one without a connection", TransportSDK, 1, refuseConnection, sure, 1},
		{"after one without a connection", TransportDirect, 2, refuseConnection, sure, 1},
		{"before one that never connected is read", TransportDirect, 1, connected(false, refuseConnection), sure, 1},
	} {
		t.Run(c.name+", "+string(c.by), func(t *testing.T) {
			client, w := inMemory(c.fault)
			s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					if c.had--; c.had < 0 {
						return aws.Credentials{}, missing
					}
					return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
				})
			}), "test", quick, func(o *Options) { o.Transport = c.by })
			_, err := s.Acquire(t.Context(), claim)
			wantStoreError(t, err, opAcquire, lambdaidem.ReasonPermission, c.says)
			if !errors.Is(err, missing) || w.trips() != c.trips {
				t.Errorf("%v after %d attempts; want %v after %d", err, w.trips(), missing, c.trips)
			}
		})
	}
}

// If credentials don't arrive, each attempt waits for its whole timeout and sends nothing. The
// direct transport waits once more, before the SDK's attempts begin.
func TestX8_CredentialsThatDontCome(t *testing.T) {
	both(t, func(t *testing.T, by func(*Options)) {
		synctest.Test(t, func(t *testing.T) {
			client, w := inMemory(good)
			s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
					<-ctx.Done()
					return aws.Credentials{}, ctx.Err()
				})
			}), "test", quick, by)
			began := time.Now()
			_, err := s.Acquire(t.Context(), claim)
			wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, true)
			want := 3 * 2 * time.Second
			if which, _ := s.Transport(); which == TransportDirect {
				want += 2 * time.Second
			}
			if took := time.Since(began); took != want || w.trips() != 0 {
				t.Errorf("took %v and %d attempts on the wire; want %v and none", took, w.trips(), want)
			}
		})
	})
}

// If an account is required but the credentials don't name one, both transports return the SDK's
// error.
func TestX5_ARequiredAccountIsAskedFor(t *testing.T) {
	said := map[Transport]string{}
	both(t, func(t *testing.T, by func(*Options)) {
		client, w := inMemory(good)
		s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.BaseEndpoint, o.AccountIDEndpointMode = nil, aws.AccountIDEndpointModeRequired
		}), "test", quick, by)
		_, err := s.Acquire(t.Context(), claim)
		if err == nil || w.trips() != 0 {
			t.Fatalf("%v after %d attempts; want an error, and none", err, w.trips())
		}
		which, _ := s.Transport()
		said[which] = err.Error()
	})
	if said[TransportSDK] != said[TransportDirect] || len(said) != 2 {
		t.Errorf("%q", said)
	}
}
