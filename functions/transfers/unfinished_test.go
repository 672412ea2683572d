package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// books has the tables of accounts and transfers of a test.
type books struct {
	client              *dynamodb.Client
	accounts, transfers string
}

func accountKey(who string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "EUR https://issuer.example.com " + who}}
}

func (b books) open(t *testing.T, who, balance string) {
	t.Helper()
	account := accountKey(who)
	account["balance"] = &types.AttributeValueMemberN{Value: balance}
	if _, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(b.accounts), Item: account}); err != nil {
		t.Fatal(err)
	}
}

// expect checks the balances of both accounts, where 0 also stands for a closed one, and
// the status of the only transfer.
func (b books) expect(t *testing.T, alice, bob int, status ledger.Status) {
	t.Helper()
	for who, want := range map[string]int{"alice": alice, "bob": bob} {
		out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(b.accounts), Key: accountKey(who), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		var account struct {
			Balance int `dynamodbav:"balance"`
		}
		if err := attributevalue.UnmarshalMap(out.Item, &account); err != nil || account.Balance != want {
			t.Errorf("the account of %s has %d, %v; want %d", who, account.Balance, err, want)
		}
	}
	out, err := b.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(b.transfers), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	var all []ledger.Transfer
	if err := attributevalue.UnmarshalListOfMaps(out.Items, &all); err != nil || len(all) != 1 || all[0].Status != status {
		t.Errorf("the transfers are %+v, %v; want one that is %s", all, err, status)
	}
}

// The reservation is refused, and the attempt dies before it answers. The retry gets the answer
// that the first attempt would have given.
func TestR1_ARefusalThatIsReplayedInsideIsTheSameAnswer(t *testing.T) {
	client := ddblocal.ForTest(t).Client()
	names := template.TablesForTest(t, client, "../../template.yaml")
	b := books{client, names["AccountsTable"], names["TransfersTable"]}
	b.open(t, "alice", "1")
	b.open(t, "bob", "0")
	guard := lambdaidem.New(dynamostore.New(client, names["IdempotencyTable"]), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	create := newHandler(guard, ledger.Transfers(b.transfers), ledger.Accounts(b.accounts), "http://127.0.0.1:1").create
	runs := 0
	send := guard.APIGatewayV2(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		resp, err := create(ctx, e)
		if runs++; runs == 1 {
			return answer{}, lambdaidem.Retryable(errors.New("the attempt died"))
		}
		return resp, err
	})
	request := post("key-1", `{"amount":100,"currency":"EUR","to":"bob"}`)
	if resp, err := send(t.Context(), request); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("the first attempt ended with %d, %v", resp.StatusCode, err)
	}
	resp, err := send(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expectProblem(t, resp, http.StatusPaymentRequired, "insufficient_funds", "Your account does not have that much.")
}

// An account is closed during the call of the clearing house. The money can't be credited then,
// and the clearing can't be undone, so a retry must be able to end the transfer later.
func TestE2_AccountClosedDuringTheClearingOnlyDelaysTheTransfer(t *testing.T) {
	for name, tt := range map[string]struct {
		ruling       int
		said         string
		closed       string
		alice        int    // balance of alice while the account is closed
		reopened     string // balance with which the closed account is opened again
		status       int
		aliceAtEnd   int
		bobAtEnd     int
		transferEnds ledger.Status
	}{
		"the recipient's, and it clears": {http.StatusCreated, `{"id":"clr_1"}`, "bob", 900, "0", http.StatusCreated, 900, 100, ledger.Done},
		"the payer's, and it refuses":    {http.StatusUnprocessableEntity, `{"reason":"no"}`, "alice", 0, "900", http.StatusUnprocessableEntity, 1000, 0, ledger.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			client := ddblocal.ForTest(t).Client()
			names := template.TablesForTest(t, client, "../../template.yaml")
			b := books{client, names["AccountsTable"], names["TransfersTable"]}
			b.open(t, "alice", "1000")
			b.open(t, "bob", "0")
			rulings := 0
			house := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rulings++
				if _, err := client.DeleteItem(r.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(b.accounts), Key: accountKey(tt.closed)}); err != nil {
					t.Error(err)
				}
				w.WriteHeader(tt.ruling)
				_, _ = w.Write([]byte(tt.said))
			}))
			defer house.Close()
			var ended lambdaidem.Event // the last event of the request itself
			guard := lambdaidem.New(dynamostore.New(client, names["IdempotencyTable"]), func(o *lambdaidem.Options) {
				o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) {
					if e.Route == "POST /transfers" {
						ended = e
					}
				})
			})
			send := guard.APIGatewayV2(newHandler(guard, ledger.Transfers(b.transfers), ledger.Accounts(b.accounts), clearing(house.URL)).create)
			request := post("key-1", `{"amount":100,"currency":"EUR","to":"bob"}`)

			for range 2 { // nothing is stored, however often the client tries
				resp, err := send(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				expectProblem(t, resp, http.StatusInternalServerError, string(lambdaidem.ErrConditionFailed), "")
				failed, ok := errors.AsType[*dynamostore.ConditionFailed](ended.Err)
				if ended.Kind != lambdaidem.EventReleased || !ok || failed.Write != "credit" {
					t.Errorf("the attempt ended as %s, %v; want it released, with the failed credit", ended.Kind, ended.Err)
				}
				b.expect(t, tt.alice, 0, ledger.Reserved)
			}
			b.open(t, tt.closed, tt.reopened)
			for range 2 { // the end of the transfer, and its replay
				if resp, err := send(t.Context(), request); err != nil || resp.StatusCode != tt.status {
					t.Errorf("with the account open again: %d %s, %v; want %d", resp.StatusCode, resp.Body, err, tt.status)
				}
				b.expect(t, tt.aliceAtEnd, tt.bobAtEnd, tt.transferEnds)
			}
			if rulings != 1 {
				t.Errorf("the clearing house ruled %d times; want once", rulings)
			}
		})
	}
}
