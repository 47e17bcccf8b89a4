package store

// What the tests of plans and errors look at from outside.
var (
	TaskQuery        = taskQuery
	StoryQuery       = storyQuery
	SelectWaiting    = selectWaiting
	SelectBranches   = selectBranches
	CountStories     = countStories
	CountEpic        = countEpic
	Elsewhere        = elsewhere
	LoadStatements   = loadStatements
	CommitStatements = commitStatements
	Mapped           = mapped
	KeepStatements   = keepStatements
)

// What a connection must be able to do.
type (
	SQLiteRunner  = sqliteRunner
	SQLiteSession = sqliteSession
)

// MostStatements is how many statements a connection keeps.
const MostStatements = statements
