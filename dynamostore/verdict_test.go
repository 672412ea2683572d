package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The test runs every pair of outcomes of a write's two attempts. The call is unknown if an attempt
// may have been applied, and certain otherwise.
func TestX8_OneAmbiguousAttemptMakesTheCallUnknown(t *testing.T) {
	const unknown, sure = false, true
	client, table := freshTable(t)
	plain := New(client, table, patient)
	for _, c := range []struct {
		name       string
		faults     []fault
		reason     lambdaidem.Reason
		notApplied bool
	}{
		{"throttled throughout", []fault{throttle, throttle, throttle}, lambdaidem.ReasonThrottled, sure},
		{"no connection throughout", []fault{refuseConnection, refuseConnection, refuseConnection}, lambdaidem.ReasonUnreachable, sure},
		{"no connection, then throttled", []fault{refuseConnection, throttle, throttle}, lambdaidem.ReasonThrottled, sure},
		{"conflict", []fault{conflict}, lambdaidem.ReasonConflict, sure},
		{"throttled, then conflict", []fault{throttle, conflict}, lambdaidem.ReasonConflict, sure},
		{"request lost, then throttled", []fault{loseRequest, throttle, throttle}, lambdaidem.ReasonThrottled, unknown},
		{"throttled, then request lost", []fault{throttle, throttle, loseRequest}, lambdaidem.ReasonUnreachable, unknown},
		{"request lost, then no connection", []fault{loseRequest, refuseConnection, refuseConnection}, lambdaidem.ReasonUnreachable, unknown},
		{"request lost, then conflict", []fault{loseRequest, conflict}, lambdaidem.ReasonConflict, unknown},
		{"reply lost, then throttled", []fault{loseReply, throttle, throttle}, lambdaidem.ReasonThrottled, unknown},
		{"500 after the write, then throttled", []fault{answer500AfterWrite, throttle, throttle}, lambdaidem.ReasonThrottled, unknown},
		{"answer cut short, then throttled", []fault{cutAnswerShort, throttle, throttle}, lambdaidem.ReasonThrottled, unknown},
		{"answer from a proxy", []fault{func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			return answer(403, `{}`), nil
		}}, lambdaidem.ReasonUnknown, unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			for op, call := range map[string]func(*Store, lambdaidem.Claim, lambdaidem.Lease) error{
				opAcquire: func(s *Store, c lambdaidem.Claim, _ lambdaidem.Lease) error {
					_, err := s.Acquire(t.Context(), c)
					return err
				},
				opComplete: func(s *Store, c lambdaidem.Claim, l lambdaidem.Lease) error {
					_, err := plain.Acquire(t.Context(), c)
					_, own := s.Complete(t.Context(), l, result)
					return errors.Join(err, own)
				},
				opRelease: func(s *Store, c lambdaidem.Claim, l lambdaidem.Lease) error {
					_, err := plain.Acquire(t.Context(), c)
					_, own := s.Release(t.Context(), l, now)
					return errors.Join(err, own)
				},
				opSaveSteps: func(s *Store, c lambdaidem.Claim, l lambdaidem.Lease) error {
					_, err := plain.Acquire(t.Context(), c)
					_, own := s.SaveSteps(t.Context(), l, twoSteps, now)
					return errors.Join(err, own)
				},
			} {
				own, ownLease := claim, lease
				own.ID, ownLease.ID = op+c.name, op+c.name
				faulty, w := over(client, c.faults...)
				err := call(New(faulty, table, quick, patient), own, ownLease)
				wantStoreError(t, err, op, c.reason, c.notApplied)
				if w.trips() != len(c.faults) {
					t.Errorf("%s: %d attempts; want %d", op, w.trips(), len(c.faults))
				}
			}
		})
	}
}

// A failed dial proves that nothing was sent only if there was no connection in the whole attempt,
// and if the HTTP client calls the hooks that report connections.
func TestX8_AFailedDialProvesNothingOnceAConnectionExisted(t *testing.T) {
	both(t, func(t *testing.T, by func(*Options)) {
		client, table := freshTable(t)
		for name, c := range map[string]struct {
			fault      fault
			notApplied bool
			applied    bool
		}{
			"never connected":              {refuseConnection, true, false},
			"a client of its own retries":  {loseReplyAndFailDial, false, true},
			"a client that calls no hooks": {failDial, false, false},
			"no hooks, and the reply was lost": {func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
				if err := deliver(r.WithContext(context.WithoutCancel(t.Context())), next); err != nil {
					return nil, err
				}
				return failDial(r, next)
			}, false, true},
		} {
			t.Run(name, func(t *testing.T) {
				own := claim
				own.ID = t.Name()
				faulty, _ := over(client, c.fault)
				_, err := New(faulty, table, quick, patient, by, func(o *Options) { o.Attempts = 1 }).Acquire(t.Context(), own)
				wantStoreError(t, err, opAcquire, lambdaidem.ReasonUnreachable, c.notApplied)
				if there := itemOf(t, client, table, own.ID) != nil; there != c.applied {
					t.Errorf("the lock was applied: %v; want %v", there, c.applied)
				}
			})
		}
	})
}

// The first request of a transaction may still be applied. The transaction stays unknown, although
// its second request was never sent and the caller's context has ended.
func TestX8_AnEarlierAmbiguityIsNotForgotten(t *testing.T) {
	both(t, func(t *testing.T, by func(*Options)) {
		client, _ := inMemory(loseRequest, callerEnds(refuseConnection))
		s := New(client, "test", quick, by, func(o *Options) { o.Attempts = 1 })
		tx := s.Begin(rand.Reader)
		tx.Seal(lambdaidem.OutcomeSucceeded)
		completion := &lambdaidem.Completion{Lease: lease, Result: result}
		_, err := tx.Commit(t.Context(), completion)
		wantStoreError(t, err, opCommit, lambdaidem.ReasonUnreachable, false)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err = tx.Commit(context.WithValue(ctx, callerEndKey{}, cancel), completion)
		if e, ok := errors.AsType[*lambdaidem.StoreError](err); !ok || e.NotApplied {
			t.Errorf("the second call says %v; want that it may have been applied", err)
		}
	})
}

// A later reply settles whether an earlier attempt was applied. If the record in the reply has the
// caller's own token, the earlier attempt was applied.
func TestL4_OwnTokenInARefusalIsSuccess(t *testing.T) {
	client, table := freshTable(t)
	for name, f := range map[string]fault{"reply lost": loseReply, "500": answer500AfterWrite, "answer cut short": cutAnswerShort} {
		t.Run(name, func(t *testing.T) {
			faulty := func() *Store { c, _ := over(client, f); return New(c, table, quick, patient) }
			claim, lease := claim, lease
			claim.ID, lease.ID = name, name

			got, err := faulty().Acquire(t.Context(), claim)
			if err != nil || got.State != lambdaidem.InProgress || got.Token != claim.Token || got.Attempt != 1 {
				t.Fatalf("Acquire: %+v, %v; want the lease", got, err)
			}
			saved, err := faulty().SaveSteps(t.Context(), lease, twoSteps, now)
			if err != nil || len(saved.Steps) != len(twoSteps) {
				t.Fatalf("SaveSteps: %+v, %v; want them saved", saved, err)
			}
			released, err := faulty().Release(t.Context(), lease, now)
			if err != nil || released.State != lambdaidem.Released {
				t.Fatalf("Release: %+v, %v; want it released", released, err)
			}
			second := claim
			second.Token, second.Over = "token-2", &released
			got, err = faulty().Acquire(t.Context(), second)
			if err != nil || got.Token != "token-2" || got.Attempt != 2 || len(got.Steps) != len(twoSteps) {
				t.Fatalf("takeover: %+v, %v; want the lease of attempt 2, with its steps", got, err)
			}
			own := lease
			own.Token = "token-2"
			got, err = faulty().Complete(t.Context(), own, result)
			if err != nil || got.State != lambdaidem.Completed || string(got.Result.Value) != string(result.Value) {
				t.Fatalf("Complete: %+v, %v; want it completed", got, err)
			}
		})
	}
}

func TestX8_ALaterRefusalByAnothersRecordSettlesTheCall(t *testing.T) {
	client, table := freshTable(t)
	plain := New(client, table, patient)
	if _, err := plain.Acquire(t.Context(), claimBy("another")); err != nil {
		t.Fatal(err)
	}
	faulty := func() *Store { c, _ := over(client, loseRequest); return New(c, table, quick, patient) }
	got, err := faulty().Acquire(t.Context(), claim)
	if err != nil || got.Token != "another" {
		t.Errorf("Acquire: %+v, %v; want the other's record", got, err)
	}
	got, err = faulty().Complete(t.Context(), lease, result)
	if !errors.Is(err, lambdaidem.ErrLeaseLost) || got.Token != "another" {
		t.Errorf("Complete: %+v, %v; want ErrLeaseLost and the other's record", got, err)
	}
	got, err = faulty().Release(t.Context(), lease, now)
	if !errors.Is(err, lambdaidem.ErrLeaseLost) || got.Token != "another" {
		t.Errorf("Release: %+v, %v; want ErrLeaseLost and the other's record", got, err)
	}
}

func TestX9_AConflictIsReportedAtOnce(t *testing.T) {
	client, table := freshTable(t)
	faulty, w := over(client, conflict)
	_, err := New(faulty, table, quick, patient).Acquire(t.Context(), claim)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonConflict, true)
	if w.trips() != 1 {
		t.Errorf("%d attempts; want 1: the guard retries a conflict itself", w.trips())
	}
}

func TestX5_EveryReasonIsNamed(t *testing.T) {
	for _, c := range []struct {
		code   string
		reason lambdaidem.Reason
		trips  int // the number of attempts; 3 if the SDK retries the error
	}{
		{"ProvisionedThroughputExceededException", lambdaidem.ReasonThrottled, 3},
		{"ThrottlingException", lambdaidem.ReasonThrottled, 3},
		{"Throttling", lambdaidem.ReasonThrottled, 3},
		{"RequestLimitExceeded", lambdaidem.ReasonThrottled, 3},
		{"TransactionConflictException", lambdaidem.ReasonConflict, 1},
		{"ReplicatedWriteConflictException", lambdaidem.ReasonConflict, 1},
		{"ResourceNotFoundException", lambdaidem.ReasonNoTable, 1},
		{"AccessDeniedException", lambdaidem.ReasonPermission, 1},
		{"UnrecognizedClientException", lambdaidem.ReasonPermission, 1},
		{"ExpiredTokenException", lambdaidem.ReasonPermission, 1},
		{"AccessDenied", lambdaidem.ReasonPermission, 1},
		{"NotAuthorized", lambdaidem.ReasonPermission, 1},
		{"OptInRequired", lambdaidem.ReasonPermission, 1},
		{"InvalidClientTokenId", lambdaidem.ReasonPermission, 1},
		{"ExpiredToken", lambdaidem.ReasonPermission, 1},
		{"RequestExpired", lambdaidem.ReasonPermission, 1},
		{"MissingAuthenticationToken", lambdaidem.ReasonPermission, 1},
		{"MissingAuthenticationTokenException", lambdaidem.ReasonPermission, 1},
		{"IncompleteSignature", lambdaidem.ReasonPermission, 1},
		{"IncompleteSignatureException", lambdaidem.ReasonPermission, 1},
		{"InvalidSignatureException", lambdaidem.ReasonPermission, 1},
		{"SignatureDoesNotMatch", lambdaidem.ReasonPermission, 1},
		{"ValidationException", lambdaidem.ReasonInvalid, 1},
		{"SerializationException", lambdaidem.ReasonInvalid, 1},
		{"SomethingNewException", lambdaidem.ReasonUnknown, 1},
	} {
		client, w := inMemory(refuseAs(c.code), refuseAs(c.code), refuseAs(c.code))
		_, err := New(client, "test", quick).Acquire(t.Context(), claim)
		wantStoreError(t, err, opAcquire, c.reason, true)
		if w.trips() != c.trips {
			t.Errorf("%s: %d attempts; want %d", c.code, w.trips(), c.trips)
		}
	}
	client, w := inMemory()
	withoutCredentials := dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no credentials here")
		})
	})
	_, err := New(withoutCredentials, "test", quick).Acquire(t.Context(), claim)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonPermission, true)
	if w.trips() != 0 {
		t.Errorf("%d attempts without credentials; want none", w.trips())
	}
}

func TestX8_AnAttemptThatHangsIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := inMemory(hang, succeed)
		began := time.Now()
		if _, err := New(client, "test", quick).Acquire(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*time.Second || w.trips() != 2 {
			t.Errorf("took %v and %d attempts; want 2s, the attempt's default limit, and 2", took, w.trips())
		}
	})
}

func TestX8_AttemptsThatAllHangAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := inMemory(hang, hang)
		s := New(client, "test", func(o *Options) {
			o.Attempts, o.AttemptTimeout = 2, 300*time.Millisecond
			o.BackoffBase, o.Random = 100*time.Millisecond, func() float64 { return 0.5 }
		})
		began := time.Now()
		_, err := s.Acquire(t.Context(), claim)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, false)
		if took := time.Since(began); took != 650*time.Millisecond || w.trips() != 2 {
			t.Errorf("took %v and %d attempts; want 300ms + 50ms + 300ms and 2", took, w.trips())
		}
	})
}

// A response that arrives when the attempt's time runs out counts.
func TestX8_AnAnswerAtTheAttemptsEndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := inMemory(func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
			<-r.Context().Done()
			return refuseFor(itemJSON(completedItem()))(r, next)
		})
		got, err := New(client, "test", quick).Acquire(t.Context(), claimBy("token-2"))
		if err != nil || got.State != lambdaidem.Completed || w.trips() != 1 {
			t.Errorf("%+v, %v after %d attempts; want the completed record after 1", got, err, w.trips())
		}
	})
}

// The error names AttemptTimeout only if that timeout ended the attempts.
func TestX5_ATimeoutSaysWhoseItWas(t *testing.T) {
	httpClients := func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) { return nil, context.DeadlineExceeded }
	for _, c := range []struct {
		name    string
		fault   fault
		callers time.Duration
		ours    bool
	}{
		{"the attempt's", hang, time.Hour, true},
		{"the caller's", hang, time.Second, false},
		{"the HTTP client's", httpClients, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.callers)
				defer cancel()
				client, _ := inMemory(c.fault, c.fault, c.fault)
				_, err := New(client, "test", quick).Acquire(ctx, claim)
				wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, false)
				if ours := strings.Contains(err.Error(), "Options.AttemptTimeout"); ours != c.ours {
					t.Errorf("error is %q; want Options.AttemptTimeout in it: %v", err, c.ours)
				}
			})
		})
	}
}

func TestX8_TheCallersOwnEndIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		client, w := inMemory(hang, succeed)
		began := time.Now()
		_, err := New(client, "test", quick).Complete(ctx, lease, result)
		wantStoreError(t, err, opComplete, lambdaidem.ReasonTimeout, false)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v; want it to be context.DeadlineExceeded", err)
		}
		if took := time.Since(began); took != 400*time.Millisecond || w.trips() != 1 {
			t.Errorf("took %v and %d attempts; want 400ms and 1", took, w.trips())
		}
	})
}

func TestX8_AContextThatEndedBeforeSendingAppliedNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client, w := inMemory(succeed)
	_, err := New(client, "test", quick).Acquire(ctx, claim)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, true)
	if w.trips() != 0 {
		t.Errorf("%d attempts; want none", w.trips())
	}
}

func TestX8_AContextThatEndsWhileWaitingToRetryKeepsTheVerdict(t *testing.T) {
	for _, c := range []struct {
		name       string
		fault      fault
		notApplied bool
	}{{"throttled", throttle, true}, {"request lost", loseRequest, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				client, w := inMemory(c.fault)
				_, err := New(client, "test", func(o *Options) { o.Random = func() float64 { return 0.9 } }).Acquire(ctx, claim)
				wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, c.notApplied)
				if w.trips() != 1 {
					t.Errorf("%d attempts; want 1", w.trips())
				}
			})
		})
	}
}

// The context may end while the SDK gets credentials. The SDK does not check the context after
// that, but nothing must be sent.
func TestX8_AContextThatEndsJustBeforeSendingAppliedNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client, w := inMemory(succeed)
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			cancel()
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		})
	})
	_, err := New(client, "test", quick).Acquire(ctx, claim)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, true)
	if w.trips() != 0 {
		t.Errorf("%d attempts; want none", w.trips())
	}
}

// A request that got a 5xx may have been applied, whatever the error's code is.
func TestX8_EveryServerErrorIsUnknown(t *testing.T) {
	for _, c := range []struct {
		status     int
		code       string
		reason     lambdaidem.Reason
		notApplied bool
	}{
		{500, "InternalServerError", lambdaidem.ReasonUnknown, false},
		{502, "BadGateway", lambdaidem.ReasonUnknown, false},
		{503, "ServiceUnavailable", lambdaidem.ReasonUnknown, false},
		{503, "ThrottlingException", lambdaidem.ReasonThrottled, false},
		{504, "GatewayTimeout", lambdaidem.ReasonUnknown, false},
		{400, "ThrottlingException", lambdaidem.ReasonThrottled, true},
		{429, "ThrottlingException", lambdaidem.ReasonThrottled, true},
		{399, "ThrottlingException", lambdaidem.ReasonThrottled, false},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			f := fail(c.status, c.code, "by the test")
			client, _ := inMemory(f, f, f)
			_, err := New(client, "test", quick).Complete(t.Context(), lease, result)
			wantStoreError(t, err, opComplete, c.reason, c.notApplied)
		})
	}
}

// A refusal settles the call even if the existing item can't be read.
func TestX8_ALaterRefusalByAForeignItemSettlesTheCall(t *testing.T) {
	foreign := refuseFor(`{"id":{"S":"idem#test"},"paid":{"BOOL":true}}`)
	for op, call := range writeVerbs {
		client, _ := inMemory(loseRequest, foreign)
		err := call(t.Context(), New(client, "test", quick))
		wantStoreError(t, err, op, lambdaidem.ReasonForeign, true)
	}
}

// A refusal without an item settles the call too: the record is gone.
func TestX8_ALaterRefusalByNothingSettlesTheCall(t *testing.T) {
	client, _ := inMemory(loseRequest, refuseAs("ConditionalCheckFailedException"))
	got, err := New(client, "test", quick).Complete(t.Context(), lease, result)
	if !errors.Is(err, lambdaidem.ErrLeaseLost) || got.State != lambdaidem.Absent {
		t.Errorf("%+v, %v; want no record and ErrLeaseLost", got, err)
	}
}

// writeVerbs has a call of each method that writes.
var writeVerbs = map[string]func(context.Context, *Store) error{
	opAcquire:  func(ctx context.Context, s *Store) error { _, err := s.Acquire(ctx, claim); return err },
	opComplete: func(ctx context.Context, s *Store) error { _, err := s.Complete(ctx, lease, result); return err },
	opRelease:  func(ctx context.Context, s *Store) error { _, err := s.Release(ctx, lease, now); return err },
	opSaveSteps: func(ctx context.Context, s *Store) error {
		_, err := s.SaveSteps(ctx, lease, twoSteps, now)
		return err
	},
}

// A read writes nothing, however it fails.
func TestX8_AFailedReadAppliedNothing(t *testing.T) {
	server := fail(500, "InternalServerError", "by the test")
	for _, c := range []struct {
		name   string
		fault  fault
		reason lambdaidem.Reason
	}{
		{"request lost", loseRequest, lambdaidem.ReasonUnreachable},
		{"500", server, lambdaidem.ReasonUnknown},
		{"not an item of ours", find(`{"id":{"S":"idem#test"}}`), lambdaidem.ReasonForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, _ := inMemory(c.fault, c.fault, c.fault)
			_, err := New(client, "test", quick).Get(t.Context(), claim.ID, now)
			wantStoreError(t, err, opGet, c.reason, true)
		})
	}
}

// DynamoDB has two texts for an item that is too large, and no error code.
func TestX4_DynamoDBsWordsForTooLargeAreKnown(t *testing.T) {
	for sentence, reason := range map[string]lambdaidem.Reason{
		"Item size has exceeded the maximum allowed size":                                 lambdaidem.ReasonTooLarge,
		"Item size to update has exceeded the maximum allowed size":                       lambdaidem.ReasonTooLarge,
		"Invalid UpdateExpression: Expression size has exceeded the maximum allowed size": lambdaidem.ReasonInvalid,
		"Item size is no number": lambdaidem.ReasonInvalid,
	} {
		for op, call := range writeVerbs {
			client, w := inMemory(fail(400, "ValidationException", sentence))
			err := call(t.Context(), New(client, "test", quick))
			wantStoreError(t, err, op, reason, true)
			if w.trips() != 1 {
				t.Errorf("%s: %d attempts; want 1", op, w.trips())
			}
		}
	}
}

// If packets are lost while connecting, the attempt times out, but the request was certainly not
// sent.
func TestX8_AnAttemptThatDiesConnectingAppliedNothing(t *testing.T) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	t.Cleanup(transport.CloseIdleConnections)
	client, _ := inMemory()
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	s := New(client, "test", quick, func(o *Options) { o.Attempts, o.AttemptTimeout = 2, 5*time.Millisecond })
	_, err := s.Acquire(t.Context(), claim)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonTimeout, true)
}

// inMemory returns a client whose requests meet the given faults. After these, there is no
// connection.
func inMemory(faults ...fault) (*dynamodb.Client, *faultyWire) {
	w := &faultyWire{faults: faults, next: unreachable{}}
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String("http://dynamodb.test"),
		Credentials:  credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
		HTTPClient:   w,
	}, switched), w
}

type unreachable struct{}

func (unreachable) Do(r *http.Request) (*http.Response, error) { return refuseConnection(r, nil) }
