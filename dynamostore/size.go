package dynamostore

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxItemSize is DynamoDB's limit for the size of one item in bytes, including the names of
// its attributes: 400 KB (AWS, "Quotas in Amazon DynamoDB").
const maxItemSize = 400 * 1024

// reservedSize is the number of bytes of an item that its steps must leave free for the record's
// other attributes. Otherwise no attempt could finish the record and no operator could settle it.
// These are the maximum sizes of those attributes in bytes, including their names:
//
//	scope         3,939  five parts of 256 characters; an escaped character takes three
//	operations    3,285  MaxOperations operations, with the longest name and reason each
//	last_failure    140
//	invocation      138
//	validation       87
//	the others      131  timestamps, state, attempt number, bound, cipher and lease shard
//
// The sum is 7,720. The rest of the 8 KiB is for attributes to which Options give longer names.
const reservedSize = 8 << 10

// maxStepsSize is the maximum size in bytes of a record's steps, key and token together, including
// the names of the attributes. The rest of an item, reservedSize, is for the other attributes.
const maxStepsSize = maxItemSize - reservedSize

// bytesPerWrite is the number of bytes that one write unit covers. DynamoDB rounds the size of an
// item up to a multiple of bytesPerWrite (AWS, "DynamoDB read and write operations").
const bytesPerWrite = 1024

// sizeOf returns the size of an item in bytes, by the rules that AWS publishes ("DynamoDB item
// sizes and formats"). The size includes the attributes' names in UTF-8.
func sizeOf(attrs map[string]types.AttributeValue) int {
	n := 0
	for name, v := range attrs {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

// sizeOfValue returns the size of an attribute's value in bytes; see sizeOf. A list or map takes 3
// bytes, 1 byte for each member, and the size of each member.
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

// sizeOfSet returns the sum of the sizes of the members.
func sizeOfSet[T any](members []T, size func(T) int) int {
	n := 0
	for _, m := range members {
		n += size(m)
	}
	return n
}

// sizeOfNumber returns the size in bytes of a number in decimal notation: one byte for each pair of
// significant digits, plus one byte, plus one more for a minus sign.
func sizeOfNumber(s string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(s, "-")), "e")
	digits := strings.Trim(strings.Replace(mantissa, ".", "", 1), "0") // leading and trailing zeros are not significant
	n := (len(digits)+1)/2 + 1
	if strings.HasPrefix(s, "-") {
		n++
	}
	return n
}

// size returns the item's size in bytes, counted as DynamoDB counts it; see sizeOf.
func (l *layout) size(itm *item) int {
	n := 0
	for i := range l {
		if l[i].name == "" {
			continue
		}
		if f := itemAttributes[i].field(itm); f.present() {
			n += len(l[i].name) + f.size()
		}
	}
	return n
}
