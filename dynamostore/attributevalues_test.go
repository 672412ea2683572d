package dynamostore

import (
	"math"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The size of an integer equals the size of its text by AWS's rule ("DynamoDB item sizes and
// formats"). The store uses it to detect items that are too large.
func TestX4_AWholeNumberHasTheSizeOfItsText(t *testing.T) {
	check := func(n int64) {
		t.Helper()
		i := integer{n, true}
		if got, want := i.size(), sizeOfNumber(strconv.FormatInt(n, 10)); got != want {
			t.Errorf("%d has size %d; its text has %d", n, got, want)
		}
	}
	for _, n := range []int64{0, 1_767_225_600, 1_767_225_600_123, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		check(n)
	}
	for n := int64(1); n < math.MaxInt64/10; n *= 10 {
		for _, around := range []int64{n - 1, n, n + 1, 7 * n, 12 * n / 10, 99 * n / 10} {
			check(around)
			check(-around)
		}
	}
}

// A stored failure has the same members as in all versions. Unknown members are ignored, and a
// member of another type makes the item foreign.
func TestD4_FailuresOfOtherVersions(t *testing.T) {
	for name, c := range map[string]struct {
		failure lambdaidem.Failure
		stored  attributes
	}{
		"full":  {lambdaidem.Failure{Code: "c", Type: "T", Message: "m", Status: 402}, attributes{"code": str("c"), "type": str("T"), "message": str("m"), "status": number(402)}},
		"empty": {lambdaidem.Failure{}, attributes{"code": str(""), "message": str("")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &c.failure
			written, ok := failureField{&f}.write().(*types.AttributeValueMemberM)
			if !ok || !cmp.Equal(c.stored, written.Value, cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{})) {
				t.Errorf("it is written as %v; want %v", written, c.stored)
			}
			c.stored["later"] = number(1)
			var read *lambdaidem.Failure
			if want := (failureField{&read}).read(&types.AttributeValueMemberM{Value: c.stored}); want != "" {
				t.Fatal("it is not read: want", want)
			}
			if diff := cmp.Diff(&c.failure, read); diff != "" {
				t.Errorf("written - read +:\n%s", diff)
			}
		})
	}
	for _, member := range []string{"code", "type", "message", "status"} {
		stored := attributes{"code": str("c"), "message": str("m"), member: &types.AttributeValueMemberBOOL{Value: true}}
		var read *lambdaidem.Failure
		if (failureField{&read}).read(&types.AttributeValueMemberM{Value: stored}) == "" {
			t.Errorf("a Boolean is taken for the member %s: %v", member, read)
		}
	}
}
