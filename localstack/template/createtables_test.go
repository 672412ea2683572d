package template_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// tables is a TableAPI in memory. As with DynamoDB, a new table is CREATING when it is first
// described.
type tables struct {
	created   map[string]*dynamodb.CreateTableInput
	described map[string]int
	ttl       map[string]string
}

func newTables() *tables {
	return &tables{created: map[string]*dynamodb.CreateTableInput{}, described: map[string]int{}, ttl: map[string]string{}}
}

func (f *tables) CreateTable(_ context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	name := aws.ToString(in.TableName)
	if f.created[name] != nil {
		return nil, &types.ResourceInUseException{}
	}
	f.created[name] = in
	return &dynamodb.CreateTableOutput{}, nil
}

func (f *tables) DescribeTable(_ context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	name := aws.ToString(in.TableName)
	table := f.created[name]
	if table == nil {
		return nil, &types.ResourceNotFoundException{}
	}
	status := types.TableStatusActive
	if f.described[name]++; f.described[name] == 1 {
		status = types.TableStatusCreating
	}
	indexes := []types.GlobalSecondaryIndexDescription{{IndexName: aws.String("another")}}
	for _, index := range table.GlobalSecondaryIndexes {
		indexes = append(indexes, types.GlobalSecondaryIndexDescription{IndexName: index.IndexName, KeySchema: index.KeySchema})
	}
	return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{TableStatus: status, KeySchema: table.KeySchema, StreamSpecification: table.StreamSpecification,
		GlobalSecondaryIndexes: indexes}}, nil
}

func (f *tables) DescribeTimeToLive(
	_ context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options),
) (*dynamodb.DescribeTimeToLiveOutput, error) {
	out := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	if attribute, on := f.ttl[aws.ToString(in.TableName)]; on {
		out.TimeToLiveStatus, out.AttributeName = types.TimeToLiveStatusEnabled, aws.String(attribute)
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: out}, nil
}

func (f *tables) UpdateTimeToLive(
	_ context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateTimeToLiveOutput, error) {
	f.ttl[aws.ToString(in.TableName)] = aws.ToString(in.TimeToLiveSpecification.AttributeName)
	return &dynamodb.UpdateTimeToLiveOutput{}, nil
}

func described(t *testing.T) []template.Table {
	t.Helper()
	read, err := template.Read("testdata/template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read.Tables
}

func TestL7_CreateTablesTurnsTTLOnAndMayBeRepeated(t *testing.T) {
	api, want := newTables(), described(t)
	for range 2 {
		if err := template.CreateTables(t.Context(), api, want); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"Payments": "expiration"}, api.ttl); diff != "" {
		t.Errorf("TTL (-want +got):\n%s", diff)
	}
	in := api.created["Payments"]
	if in.BillingMode != types.BillingModePayPerRequest || len(in.AttributeDefinitions) != 3 || len(in.KeySchema) != 2 {
		t.Errorf("created as %+v", in)
	}
	if len(in.GlobalSecondaryIndexes) != 1 || in.GlobalSecondaryIndexes[0].Projection.NonKeyAttributes[0] != "amount" {
		t.Errorf("indexes %+v", in.GlobalSecondaryIndexes)
	}
}

func TestD1_CreateTablesRefusesAnotherTable(t *testing.T) {
	want := described(t)

	t.Run("another key", func(t *testing.T) {
		api, other := newTables(), described(t)
		other[0].Key = other[0].Key[:1]
		if err := template.CreateTables(t.Context(), api, other); err != nil {
			t.Fatal(err)
		}
		err := template.CreateTables(t.Context(), api, want)
		if err == nil || !strings.Contains(err.Error(), "table Payments (Payments): it exists with the key") {
			t.Errorf("error %v, want one about the key", err)
		}
	})

	t.Run("another stream", func(t *testing.T) {
		api, other := newTables(), described(t)
		other[0].Stream = "NEW_IMAGE"
		if err := template.CreateTables(t.Context(), api, other); err != nil {
			t.Fatal(err)
		}
		err := template.CreateTables(t.Context(), api, want)
		if err == nil || !strings.Contains(err.Error(), `it exists with the stream "NEW_IMAGE", the template says ""`) {
			t.Errorf("error %v, want one about the stream", err)
		}
	})

	for name, change := range map[string]func(*template.Table){
		"no index":                func(t *template.Table) { t.Indexes = nil },
		"an index of another key": func(t *template.Table) { t.Indexes[0].Key = []template.KeyPart{{Name: "id", Type: "HASH"}} },
	} {
		t.Run(name, func(t *testing.T) {
			api, other := newTables(), described(t)
			change(&other[0])
			if err := template.CreateTables(t.Context(), api, other); err != nil {
				t.Fatal(err)
			}
			err := template.CreateTables(t.Context(), api, want)
			if err == nil || !strings.Contains(err.Error(), "it exists without the index byOwner with the key [{owner HASH}]") {
				t.Errorf("error %v, want one about the index", err)
			}
		})
	}

	t.Run("TTL on another attribute", func(t *testing.T) {
		api := newTables()
		api.ttl["Payments"] = "ttl"
		err := template.CreateTables(t.Context(), api, want)
		if err == nil || !strings.Contains(err.Error(), "its TTL is on the attribute ttl") {
			t.Errorf("error %v, want one about the TTL", err)
		}
	})
}
