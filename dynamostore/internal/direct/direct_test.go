package direct

import (
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// A program that makes a client again and again does not collect what was learned about each of them.
func TestE1_NothingIsKeptOfAClientThatIsGone(t *testing.T) {
	users := dynamodb.New(dynamodb.Options{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")})
	if _, err := New(wire.New(users, wire.Options{Attempts: 3, AttemptTimeout: time.Second}), users); err != nil {
		t.Fatal(err)
	}
	if !anyRehearsal() {
		t.Fatal("New has kept nothing for further transports of the client")
	}
	runtime.KeepAlive(users)
	for deadline := time.Now().Add(20 * time.Second); anyRehearsal(); runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("New still keeps what it has learned about a client that is gone")
		}
	}
}

func anyRehearsal() (found bool) {
	rehearsals.Range(func(any, any) bool {
		found = true
		return false
	})
	return found
}
