; The same without the fence: while a thread's store is pending, it sees the new value and another the old one.
; expect: sc holds, tso violated, pso violated
begin shared_data
    any dd 0
end shared_data

begin unsafe_prop
    eip[$t] = past && $t:any = 1 && $u:any = 0
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
    mov dword [any], 1
past:
    nop
end thread_code
