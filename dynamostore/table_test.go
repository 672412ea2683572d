package dynamostore

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// codes returns the codes of the problems in err.
func codes(t *testing.T, err error) []TableCode {
	t.Helper()
	var problems TableProblems
	if err != nil && !errors.As(err, &problems) {
		t.Fatalf("error %v is no TableProblems", err)
	}
	var found []TableCode
	for _, p := range problems {
		found = append(found, p.Code)
		if p.Detail == "" {
			t.Errorf("problem %s has no words", p.Code)
		}
	}
	return found
}

func TestCreateTableFitsAndMayBeRepeated(t *testing.T) {
	client, table := freshTable(t)
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := New(client, table, patient).CheckTable(t.Context()); err != nil {
		t.Errorf("its table is refused: %v", err)
	}
}

func TestS1_CheckTableWritesNothing(t *testing.T) {
	client, table := freshTable(t)
	if err := New(client, table, patient).CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Items) != 0 {
		t.Errorf("the table has %v, %v; want no item", out, err)
	}
}

func TestCheckTableFindsMisSetTables(t *testing.T) {
	for _, c := range []struct {
		name  string
		key   []types.KeySchemaElement
		types []types.AttributeDefinition
		ttl   string
		found []TableCode
		says  string
	}{
		{"ttl off", key("id"), typed("id", "S"), "", []TableCode{TTLOff}, `switch TTL on for the attribute "expiration"`},
		{"ttl on another attribute", key("id"), typed("id", "S"), "ttl", []TableCode{TTLWrongAttribute}, `Options.ExpirationAttribute to "ttl"`},
		{"key of another name", key("pk"), typed("pk", "S"), "expiration", []TableCode{WrongKey}, `Options.IDAttribute to "pk"`},
		{"key of another type", key("id"), typed("id", "N"), "expiration", []TableCode{WrongKey}, "of type N, not S"},
		{"sort key", key("id", "sk"), typed("id", "S", "sk", "S"), "expiration", []TableCode{WrongKey}, `the sort key "sk"`},
		{"all of it", key("pk", "sk"), typed("pk", "B", "sk", "S"), "", []TableCode{WrongKey, WrongKey, TTLOff}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, other := freshTable(t)
			table := other + "-misset"
			_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: aws.String(table), KeySchema: c.key, AttributeDefinitions: c.types, BillingMode: types.BillingModePayPerRequest,
			})
			dropAfter(t, client, table)
			if err == nil && c.ttl != "" {
				_, err = client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
					TableName:               aws.String(table),
					TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(c.ttl), Enabled: aws.Bool(true)},
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			found := New(client, table, patient).CheckTable(t.Context())
			if got := codes(t, found); !slices.Equal(got, c.found) {
				t.Errorf("found %v; want %v\n%v", got, c.found, found)
			}
			if found != nil && !strings.Contains(found.Error(), c.says) {
				t.Errorf("%q doesn't say %q", found, c.says)
			}
		})
	}
}

func key(names ...string) []types.KeySchemaElement {
	ks := []types.KeySchemaElement{{AttributeName: aws.String(names[0]), KeyType: types.KeyTypeHash}}
	for _, n := range names[1:] {
		ks = append(ks, types.KeySchemaElement{AttributeName: aws.String(n), KeyType: types.KeyTypeRange})
	}
	return ks
}

func typed(namesAndTypes ...string) []types.AttributeDefinition {
	var ds []types.AttributeDefinition
	for p := range slices.Chunk(namesAndTypes, 2) {
		ds = append(ds, types.AttributeDefinition{AttributeName: aws.String(p[0]), AttributeType: types.ScalarAttributeType(p[1])})
	}
	return ds
}

func TestCheckTableFindsNoTable(t *testing.T) {
	client, table := freshTable(t)
	err := New(client, table+"-none", patient).CheckTable(t.Context())
	if got := codes(t, err); !slices.Equal(got, []TableCode{NoTable}) {
		t.Errorf("found %v; want no_table alone\n%v", got, err)
	}
}

func TestS1_CheckTableNamesTheActionThatIsNotAllowed(t *testing.T) {
	for _, action := range []string{"DescribeTable", "DescribeTimeToLive", "GetItem", "PutItem", "UpdateItem"} {
		t.Run(action, func(t *testing.T) {
			err := New(described{denied: action}.client(), "records").CheckTable(t.Context())
			if got := codes(t, err); !slices.Equal(got, []TableCode{NoPermission}) {
				t.Fatalf("found %v; want no_permission alone\n%v", got, err)
			}
			if !strings.Contains(err.Error(), "dynamodb:"+action+" on table \"records\"") {
				t.Errorf("%q doesn't name the action", err)
			}
		})
	}
}

func TestD3_CheckTableWarnsOfSeveralWritingRegions(t *testing.T) {
	for consistency, c := range map[string]struct{ ttl, says string }{
		"EVENTUAL": {ttl: "ENABLED", says: "send all requests that can share a key to one Region"},
		"STRONG":   {ttl: "DISABLED", says: "neither TTL nor transactions"}, // TTL can't be enabled on such a table
	} {
		client := described{ttl: c.ttl, members: `,"Replicas":[{"RegionName":"us-east-1"}],"MultiRegionConsistency":"` + consistency + `"`}.client()
		err := New(client, "records").CheckTable(t.Context())
		if got := codes(t, err); !slices.Equal(got, []TableCode{MultiRegion}) {
			t.Fatalf("found %v; want multi_region alone\n%v", got, err)
		}
		var p *TableProblem
		if !errors.As(err, &p) || !p.Warning || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%+v is no warning that says %q", p, c.says)
		}
	}
}

func TestCheckTableFindsWhatIsNotReady(t *testing.T) {
	for _, c := range []struct {
		described
		found []TableCode
	}{
		{described{}, nil},
		{described{status: "UPDATING"}, nil}, // the table can be used
		{described{status: "CREATING"}, []TableCode{TableNotActive}},
		{described{status: "DELETING"}, []TableCode{TableNotActive}},
		{described{ttl: "ENABLING"}, nil},
		{described{ttl: "DISABLING"}, []TableCode{TTLOff}},
		{described{ttl: "DISABLED"}, []TableCode{TTLOff}},
	} {
		err := New(c.client(), "records").CheckTable(t.Context())
		if got := codes(t, err); !slices.Equal(got, c.found) {
			t.Errorf("%+v: found %v; want %v\n%v", c.described, got, c.found, err)
		}
	}
}

// CreateTable does not change a table that the store can't use, and returns an error.
func TestCreateTableRefusesATableThatCantServe(t *testing.T) {
	client, table := freshTable(t)
	err := CreateTable(t.Context(), client, table, func(o *Options) { o.IDAttribute = "pk" })
	if got := codes(t, err); !slices.Equal(got, []TableCode{WrongKey}) {
		t.Errorf("found %v; want wrong_key\n%v", got, err)
	}
}

// Two processes may create the same table at once. DynamoDB refuses the slower one's request to
// enable TTL as invalid.
func TestCreateTableMayLoseTheRaceForTTL(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  string
		after   string
		asked   bool
		succeed bool
	}{
		{"on already", "ENABLED", "ENABLED", false, true},
		{"being switched on", "ENABLING", "ENABLING", false, true},
		{"another was faster", "DISABLED", "ENABLING", true, true},
		{"refused for another reason", "DISABLED", "DISABLED", true, false}, // the error has the reason
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent []string
			table := described{ttl: c.before}
			client, _ := inMemory()
			client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
				o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
					_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
					sent = append(sent, action)
					if action == "UpdateTimeToLive" {
						table.ttl = c.after
						return fail(400, "ValidationException", "TimeToLive is already enabled")(r, nil)
					}
					return table.answer(action), nil
				})
			})
			err := CreateTable(t.Context(), client, "records")
			if (err == nil) != c.succeed {
				t.Errorf("error is %v; want none: %v", err, c.succeed)
			}
			if err != nil && !strings.Contains(err.Error(), "ValidationException") {
				t.Errorf("error is %v; want it to say what DynamoDB said", err)
			}
			if asked := slices.Contains(sent, "UpdateTimeToLive"); asked != c.asked {
				t.Errorf("sent %v; want UpdateTimeToLive among them: %v", sent, c.asked)
			}
		})
	}
}

// described is a fake table. It is correct in everything that its fields don't set.
type described struct {
	status  string // default ACTIVE
	ttl     string // default ENABLED
	members string // further members of its description
	denied  string // an action that the credentials don't allow
}

func (d described) client() *dynamodb.Client {
	client, _ := inMemory()
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			return d.answer(action), nil
		})
	})
}

func (d described) answer(action string) *http.Response {
	if action == d.denied {
		return answer(400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User is not authorized to perform it"}`)
	}
	switch action {
	case "DescribeTable":
		return answer(200, `{"Table":{"TableStatus":"`+cmp.Or(d.status, "ACTIVE")+`"`+d.members+`,"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],`+
			`"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}}`)
	case "DescribeTimeToLive":
		return answer(200, `{"TimeToLiveDescription":{"TimeToLiveStatus":"`+cmp.Or(d.ttl, "ENABLED")+`","AttributeName":"expiration"}}`)
	case "PutItem", "UpdateItem":
		return answer(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`)
	}
	return answer(200, `{}`)
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
