package dynamostore

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// Unknown members of an operation are ignored. A value that is not a list of operations makes the
// item foreign.
func TestD4_OperationsOfOtherVersions(t *testing.T) {
	own := operations{
		{What: OperationReleased, By: "alice", Reason: "TICKET-1", At: time.UnixMilli(1_700_000_000_123).UTC(), Attempt: 2, Token: "t", Forced: true},
		{What: OperationErased, By: "bob", Reason: "TICKET-2", At: time.UnixMilli(1_700_000_001_000).UTC(), Attempt: 3, Token: "u"},
	}
	list, ok := own.write().(*types.AttributeValueMemberL)
	if !ok {
		t.Fatalf("it is written as a %T", own.write())
	}
	list.Value[0].(*types.AttributeValueMemberM).Value["later"] = str("x")
	item := claimed(claim)
	attrs := standardLayout.attributes(item)
	attrs[attrOperations] = list
	itm, err := standardLayout.parse(attrs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Operation(own), itm.Operations); diff != "" {
		t.Errorf("written - read +:\n%s", diff)
	}
	none := map[string]types.AttributeValue{
		"a text":          str("x"),
		"a list of texts": &types.AttributeValueMemberL{Value: []types.AttributeValue{str("x")}},
	}
	for _, member := range []string{"what", "by", "reason", "at", "attempt", "token", "forced"} {
		none["a list of an operation whose "+member+" is a list"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{
			&types.AttributeValueMemberM{Value: attributes{member: &types.AttributeValueMemberL{}}},
		}}
	}
	for name, v := range none {
		attrs[attrOperations] = v
		if _, err := standardLayout.parse(attrs); !isForeign(err) {
			t.Errorf("%s is taken for operations: %v", name, err)
		}
	}
	if v := (&operations{}).write(); v != nil {
		t.Errorf("no operations are written as %v", v)
	}
}
