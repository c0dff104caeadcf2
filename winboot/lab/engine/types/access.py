"""System.Security.AccessControl: rules, and the security of files, folders, keys and mutexes. (CMDLETS is writing this now.)"""
