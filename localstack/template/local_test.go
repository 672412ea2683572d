package template_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// This test checks on DynamoDB Local what the tests with tables in memory assume.
func TestL7_CreateTablesOnDynamoDBLocal(t *testing.T) {
	client := ddblocal.ForTest(t).Client()
	want := described(t)
	for i := range want {
		want[i].Name = "template-test-" + want[i].Name // other tests use the same server
		want[i].Stream = "NEW_AND_OLD_IMAGES"
	}
	for range 2 {
		if err := template.CreateTables(t.Context(), client, want); err != nil {
			t.Fatal(err)
		}
	}
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(want[0].Name)})
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != "expiration" {
		t.Errorf("TTL is on the attribute %q, want expiration", got)
	}
	table, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(want[0].Name)})
	if err != nil {
		t.Fatal(err)
	}
	if s := table.Table.StreamSpecification; s == nil || s.StreamViewType != "NEW_AND_OLD_IMAGES" || aws.ToString(table.Table.LatestStreamArn) == "" {
		t.Errorf("the stream is %+v", s)
	}
	if n := len(table.Table.GlobalSecondaryIndexes); n != 1 {
		t.Errorf("%d indexes, want 1", n)
	}
}
