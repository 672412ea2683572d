package memdynamo

import "strings"

func checkTableName(name string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	switch {
	case name == "":
		return invalidf("1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case len(name) < 3 || len(name) > 255 || strings.Trim(name, allowed) != "":
		return invalidf("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	return nil
}
