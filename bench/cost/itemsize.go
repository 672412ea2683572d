package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sizeOf returns an item's size in bytes by AWS's rule ("DynamoDB item sizes and
// formats"), as far as records and the writes of this program need it.
func sizeOf(item map[string]types.AttributeValue) int {
	size := 0
	for name, v := range item {
		size += len(name) + sizeOfValue(v)
	}
	return size
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN: // an integer: one byte for every two significant digits, and one more
		return (len(strings.Trim(v.Value, "-0"))+1)/2 + 1
	case *types.AttributeValueMemberM: // three bytes, and one for each member
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberBOOL:
		return 1
	default:
		panic(fmt.Sprintf("the size of a %T is not known", v))
	}
}
