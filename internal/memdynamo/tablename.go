package memdynamo

import (
	"regexp"
	"sync"
)

func checkTableName(name string) error {
	switch {
	case name == "":
		return invalidf("1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case !tableName().MatchString(name):
		return invalidf("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	return nil
}

var tableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`) })
