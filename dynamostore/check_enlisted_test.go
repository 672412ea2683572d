package dynamostore

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestE1_CheckTableLooksAtTablesOfEnlistedWrites(t *testing.T) {
	client, records := freshTable(t)
	_, plain := freshTable(t)
	sorted := plain + "-sorted"
	if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(sorted), KeySchema: key("pk", "sk"), AttributeDefinitions: typed("pk", "B", "sk", "N"), BillingMode: types.BillingModePayPerRequest,
	}); err != nil {
		t.Fatal(err)
	}
	dropAfter(t, client, sorted)
	s := New(client, records, patient)
	if err := s.CheckTable(t.Context(), plain, sorted); err != nil {
		t.Error(err)
	}
	err := s.CheckTable(t.Context(), plain, plain+"-none")
	if got := codes(t, err); !slices.Equal(got, []TableCode{NoTable}) || !strings.Contains(err.Error(), plain+"-none") {
		t.Errorf("found %v\n%v", got, err)
	}
	for _, table := range []string{records, plain, sorted} {
		out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table)})
		if err != nil || len(out.Items) > 0 {
			t.Errorf("the check left %v in %s (%v)", out.Items, table, err)
		}
	}
}

func TestD3_CheckTableRefusesEnlistedWritesOnStronglyConsistentTables(t *testing.T) {
	strong := described{ttl: "DISABLED", members: `,"Replicas":[{"RegionName":"us-east-1"}],"MultiRegionConsistency":"STRONG"`}.client()
	err := New(strong, "records").CheckTable(t.Context(), "accounts")
	var refused []string
	for _, p := range err.(TableProblems) { //nolint:errorlint // its own type
		if p.Code == NoTransactions && !p.Warning {
			refused = append(refused, p.Detail)
		}
	}
	if len(refused) != 2 || !strings.Contains(refused[0], `"records"`) || !strings.Contains(refused[1], `"accounts"`) {
		t.Errorf("found %v", err)
	}
}

// CheckTable does not know which actions the handlers need. So an action that is not allowed is
// only a warning, unless no action is allowed.
func TestS1_CheckTableNamesTheEnlistedActionsThatAreNotAllowed(t *testing.T) {
	denying := func(actions ...string) *dynamodb.Client {
		client, _ := inMemory()
		return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
				_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
				if operation != "TransactWriteItems" {
					return described{}.answer(operation), nil
				}
				body := bodyOf(r)
				for _, a := range actions {
					if strings.Contains(body, `"`+a+`":`) && strings.Contains(body, "accounts") {
						return described{denied: operation}.answer(operation), nil
					}
				}
				return cancelledBy("ConditionalCheckFailed")(r, nil)
			})
		})
	}
	err := New(denying("Delete", "ConditionCheck"), "records").CheckTable(t.Context(), "accounts")
	if got := codes(t, err); !slices.Equal(got, []TableCode{NoPermission, NoPermission}) {
		t.Fatalf("found %v\n%v", got, err)
	}
	for i, action := range []string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem"} {
		if p := err.(TableProblems)[i]; !p.Warning || !strings.Contains(p.Detail, action) { //nolint:errorlint // its own type
			t.Errorf("%+v", p)
		}
	}
	err = New(denying("Put", "Update", "Delete", "ConditionCheck"), "records").CheckTable(t.Context(), "accounts")
	var p *TableProblem
	if got := codes(t, err); len(got) != 4 || !errors.As(err, &p) || p.Warning {
		t.Errorf("found %v\n%v", got, err)
	}
}

// After an action that gets no reply, CheckTable tries no further action, because each would wait
// as long.
func TestO3_CheckTableTriesNoFurtherActionAfterOneWithoutAReply(t *testing.T) {
	client, _ := inMemory()
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			if operation == "TransactWriteItems" && strings.Contains(bodyOf(r), "accounts") {
				return nil, errors.New("connection refused")
			}
			return described{}.answer(operation), nil
		})
	})
	err := New(client, "records", quick).CheckTable(t.Context(), "accounts", "payments")
	if got := codes(t, err); !slices.Equal(got, []TableCode{Unreachable}) {
		t.Errorf("found %v\n%v", got, err)
	}
}

// The first action is not allowed, and the next one gets no reply. No action is known to be
// allowed, so the missing permission is more than a warning.
func TestO3_CheckTableWarnsOnlyIfAnActionIsAllowed(t *testing.T) {
	client, _ := inMemory()
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			switch body := bodyOf(r); {
			case operation != "TransactWriteItems" || !strings.Contains(body, "accounts"):
				return described{}.answer(operation), nil
			case strings.Contains(body, `"ConditionCheck":`):
				return described{denied: operation}.answer(operation), nil
			default:
				return nil, errors.New("connection refused")
			}
		})
	})
	err := New(client, "records", quick).CheckTable(t.Context(), "accounts")
	if got := codes(t, err); !slices.Equal(got, []TableCode{NoPermission, Unreachable}) || err.(TableProblems)[0].Warning { //nolint:errorlint // its own type
		t.Errorf("found %v\n%v", got, err)
	}
}
