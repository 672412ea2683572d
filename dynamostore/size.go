package dynamostore

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxItemSize is DynamoDB's limit for one item in bytes, names included (AWS,
// "Quotas in Amazon DynamoDB": 400 KB).
const maxItemSize = 400 * 1024

// bytesPerWrite is what a write unit pays for; the rest of an item counts as a
// whole one (AWS, "DynamoDB read and write operations").
const bytesPerWrite = 1024

// sizeOf returns an item's size in bytes by AWS's published rule ("DynamoDB item
// sizes and formats"): UTF-8 bytes of each name, and of each value its bytes;
// a number about a byte for two significant digits, plus one; a list or map
// three bytes, plus one for each member.
func sizeOf(attrs map[string]types.AttributeValue) int {
	n := 0
	for name, v := range attrs {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return sizeOfNumber(v.Value)
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberL:
		n := 3 + len(v.Value)
		for _, member := range v.Value {
			n += sizeOfValue(member)
		}
		return n
	case *types.AttributeValueMemberSS:
		return sizeOfSet(v.Value, func(s string) int { return len(s) })
	case *types.AttributeValueMemberNS:
		return sizeOfSet(v.Value, sizeOfNumber)
	case *types.AttributeValueMemberBS:
		return sizeOfSet(v.Value, func(b []byte) int { return len(b) })
	default: // BOOL and NULL
		return 1
	}
}

func sizeOfSet[T any](members []T, size func(T) int) int {
	n := 0
	for _, m := range members {
		n += size(m)
	}
	return n
}

func sizeOfNumber(s string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(s, "-")), "e")
	digits := strings.Trim(strings.Replace(mantissa, ".", "", 1), "0") // the significant ones
	n := (len(digits)+1)/2 + 1
	if strings.HasPrefix(s, "-") {
		n++
	}
	return n
}
