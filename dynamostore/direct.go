package dynamostore

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// init makes the direct transport available, which sends requests without the SDK's middleware. No
// other file imports internal/direct. If this file and that package are deleted, the store still
// works, but more slowly.
func init() {
	directTransport = func(client *wire.Client, users *dynamodb.Client, forced bool) (wire.DirectTransport, error) {
		if lost := direct.Lost(users); lost != "" && !forced {
			return nil, errors.New(lost)
		}
		return direct.New(client, users)
	}
}
