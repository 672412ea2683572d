package simulator

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A strongly consistent table has no transactions. If a handler enlists writes, its request gets an
// error that says so, and nothing is written, with a lock and optimistically. AWS doesn't document
// DynamoDB's error. So it may be one that the store doesn't know, and then the answer says that the
// outcome is unknown.
func TestSimulate_D3_StronglyConsistentTableRefusesEnlistedWrites(t *testing.T) {
	for kind, want := range map[string]lambdaidem.Code{memdynamo.Validation: lambdaidem.ErrWriteInvalid, "SomeOtherException": lambdaidem.ErrOutcomeUnknown} {
		for _, optimistic := range []float64{0, 1} {
			synctest.Test(t, func(t *testing.T) {
				as := &Mutation{Reply: func(_ string, _ []byte, _ int, body []byte) []byte {
					return bytes.Replace(body, []byte(memdynamo.Validation), []byte(kind), 1)
				}}
				p := plan{
					keys: 2, clients: 3, requests: 2, timeout: 3 * time.Second, ttl: 24 * time.Hour, maxSkew: 2 * time.Second,
					effects: effects{enlist: true, optimistic: optimistic, verdicts: []Ending{RefusedSilent}},
					regions: regions{mode: memdynamo.Strong, anywhere: true, lag: 1000},
				}
				w := newWorld(1, &p, as)
				r := w.simulate(true)
				refused := 0
				for _, a := range w.journal.answers {
					switch lambdaidem.Code(a.got.Code) {
					case want:
						refused++
					case lambdaidem.ErrInProgress, lambdaidem.ErrPayloadMismatch: // the handler did not run
					default:
						t.Errorf("%s, optimistic %v: process %d was answered %+v", kind, optimistic, a.actor.id, a.got)
					}
				}
				rich, _ := w.dbs[0].Item(accounts, memdynamo.Item{"id": memdynamo.String(rich)})
				if refused == 0 || r.Transactions > 0 || number(rich["cents"]) != wealth {
					t.Errorf("%s, optimistic %v: %d were refused; %d transactions; the account holds %v\n%s", kind, optimistic, refused, r.Transactions, rich, r.Timeline)
				}
				for _, r := range w.journal.runs {
					if r.effects > 0 || r.paid > 0 {
						t.Errorf("%s, optimistic %v: process %d had an effect", kind, optimistic, r.actor.id)
					}
				}
			})
		}
	}
}

// CheckTable finds these problems before the first request: it warns of several Regions, and with
// enlisted writes it returns an error for a table without transactions.
func TestSimulate_D3_CheckTableTellsTheModes(t *testing.T) {
	for mode, want := range map[memdynamo.Consistency][]dynamostore.TableCode{
		"":                 nil,
		memdynamo.Eventual: {dynamostore.MultiRegion},
		memdynamo.Strong:   {dynamostore.MultiRegion, dynamostore.NoTransactions},
	} {
		w := newWorld(1, &plan{effects: effects{enlist: true}, regions: regions{mode: mode}}, nil)
		client := dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String("http://dynamodb.simulated"), HTTPClient: &memdynamo.Client{DB: w.dbs[0]},
			Credentials: credentials.NewStaticCredentialsProvider("simulated", "simulated", ""),
		})
		var found dynamostore.TableProblems
		if err := dynamostore.New(client, table).CheckTable(t.Context(), accounts); err != nil && !errors.As(err, &found) {
			t.Fatal(err)
		}
		var got []dynamostore.TableCode
		for _, p := range found {
			got = append(got, p.Code)
			if p.Warning != (p.Code == dynamostore.MultiRegion) {
				t.Errorf("%q: %s is a warning: %v", mode, p.Code, p.Warning)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: found %v; want %v\n%v", mode, got, want, found)
		}
		if mode == memdynamo.Strong && !strings.Contains(found.Error(), "neither TTL nor transactions") {
			t.Errorf("%v", found)
		}
	}
}

// The same seed gives the same run with several Regions too.
func TestSimulate_D3_SameSeedSameRun(t *testing.T) {
	for seed := range uint64(5) {
		for _, mode := range []memdynamo.Consistency{memdynamo.Eventual, memdynamo.Strong} {
			var runs [2]string
			for i := range runs {
				synctest.Test(t, func(*testing.T) { runs[i] = RunRegions(seed, mode, failing(waits{}), nil, true).Timeline })
			}
			if runs[0] != runs[1] {
				t.Fatalf("seed %d, %s: two runs:\n%s\n%s", seed, mode, runs[0], runs[1])
			}
		}
	}
}
