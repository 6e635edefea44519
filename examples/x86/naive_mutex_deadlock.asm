; A first try at a lock (conchon-2017, section 5): announce yourself, wait until you are the only
; one, then mark the section busy. Two threads whose announcements are both seen wait for ever;
; worse, one announcement may get lost, and then both come in.
; expect: sc violated
; expect: tso violated

begin shared_data
    Waiting dd 0
    Busy    dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
enter: inc dword [Waiting]
alone: cmp dword [Waiting], 1
       jne alone
       cmp dword [Busy], 0
       jne alone
       mov dword [Busy], 1
cs:    nop
       mov dword [Busy], 0
       dec dword [Waiting]
       jmp enter
end thread_code
