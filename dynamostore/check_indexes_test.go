package dynamostore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestO3_CheckTableFindsAnIndexThatRefusesRecords(t *testing.T) {
	for _, c := range []struct {
		name    string
		index   []types.KeySchemaElement
		types   []types.AttributeDefinition
		options func(*Options)
		says    []string // empty: every record fits the index
	}{
		{"another type", key("scope"), typed("scope", "N"), nil, []string{`index "mine"`, `key "scope" of type N`, "values of type S:"}},
		{"sort key of another type", key("status", "started_at"), typed("status", "S", "started_at", "S"), nil, []string{`RANGE key "started_at" of type S`, "values of type N:"}},
		{"what may be empty or binary", key("data"), typed("data", "S"), nil, []string{`key "data" of type S`, "S or B"}},
		{"what may be empty", key("encoding"), typed("encoding", "S"), nil, []string{`key "encoding"`, "empty"}},
		{"the parts of answers", key("part"), typed("part", "S"), nil, []string{`key "part"`, "values of type M:"}},
		{"a renamed attribute", key("body"), typed("body", "N"), func(o *Options) { o.DataAttribute = "body" }, []string{`key "body"`}},
		{"an index beside the lease index", key("scope"), typed("scope", "N"), func(o *Options) { o.LeaseIndex = "leases" }, []string{`key "scope" of type N`}},
		{"the same types", key("scope", "started_at"), typed("scope", "S", "started_at", "N"), nil, nil},
		{"the name of a renamed attribute", key("data"), typed("data", "N"), func(o *Options) { o.DataAttribute = "body" }, nil},
		{"attributes of others", key("customer", "at"), typed("customer", "N", "at", "B"), nil, nil},
		{"a lease index that is not used", key("lease_shard"), typed("lease_shard", "N"), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &types.TableDescription{
				AttributeDefinitions: append(typed("id", "S"), c.types...),
				GlobalSecondaryIndexes: []types.GlobalSecondaryIndexDescription{
					{IndexName: aws.String("mine"), KeySchema: c.index},
				},
			}
			o := resolved("New", "records", []func(*Options){func(o *Options) {
				if c.options != nil {
					c.options(o)
				}
			}})
			found := checkIndexes("records", d, &o)
			if len(c.says) == 0 {
				if len(found) > 0 {
					t.Errorf("found %v; want nothing", found)
				}
				return
			}
			if !slices.Equal(codes(t, found.err()), []TableCode{IndexConflict}) {
				t.Fatalf("found %v; want index_conflict alone", found)
			}
			for _, part := range c.says {
				if !strings.Contains(found.Error(), part) {
					t.Errorf("%q doesn't say %q", found, part)
				}
			}
		})
	}
}

// CheckTable reports an index as a conflict exactly if DynamoDB refuses to write a record because
// of it.
func TestO3_CheckTableAgreesWithDynamoDBOnAnIndex(t *testing.T) {
	for _, c := range []struct {
		of      types.ScalarAttributeType
		refused bool
	}{{types.ScalarAttributeTypeN, true}, {types.ScalarAttributeTypeS, false}} {
		client, other := freshTable(t)
		table := other + "-indexed"
		if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String(table), KeySchema: key("id"), AttributeDefinitions: typed("id", "S", "scope", string(c.of)), BillingMode: types.BillingModePayPerRequest,
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				{IndexName: aws.String("mine"), KeySchema: key("scope"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			},
		}); err != nil {
			t.Fatal(err)
		}
		dropAfter(t, client, table)
		s := New(client, table, patient)
		_, err := s.Acquire(t.Context(), claim)
		found := codes(t, s.CheckTable(t.Context()))
		if refused := err != nil; refused != c.refused || slices.Contains(found, IndexConflict) != c.refused {
			t.Errorf("an index on the scope, of type %s: a lock is refused: %v (%v); CheckTable finds %v", c.of, refused, err, found)
		}
	}
}

// attribute.kinds, by which CheckTable judges an index, matches the values that are written.
func TestTheKindOfAnAttributeIsThatOfItsValue(t *testing.T) {
	itm := fullItem()
	itm.Bound, itm.Operations, itm.Erasing = "downstream_key", []Operation{{}}, &parts{Checksum: []byte{}}
	for _, a := range itemAttributes {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", valueOf(a.field(itm))), "*types.AttributeValueMember")
		if first, _, _ := strings.Cut(string(a.kinds), " "); strings.Trim(first, ",") != kind {
			t.Errorf("%s has the kinds %q; its value is of type %s", a.standard, a.kinds, kind)
		}
	}
}

// After a call that gets no reply, CheckTable makes no further call.
func TestO3_CheckTableEndsWithTheFirstCallThatGetsNoAnswer(t *testing.T) {
	client, w := wireTo(described{})
	w.next = unreachable{}
	err := New(client, "records", quick).CheckTable(t.Context())
	if got := codes(t, err); !slices.Equal(got, []TableCode{Unreachable}) || !strings.Contains(err.Error(), "dynamodb:DescribeTable") {
		t.Errorf("found %v: %v; want unreachable alone, with the call", got, err)
	}
}
