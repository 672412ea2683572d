package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// The store knows the direct transport by this file alone. A toolkit without it and without
// the folder internal/direct works as well, and more slowly.
func init() {
	directTransport = func(client *wire.Client, users *dynamodb.Client, forced bool) (transport, string) {
		if lost := direct.Lost(users); lost != "" && !forced {
			return nil, lost
		}
		return direct.New(client), ""
	}
}
